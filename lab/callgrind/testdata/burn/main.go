// Command burn computes blocks of so many turns. A test binary has no names of functions,
// which callgrind needs.
package main

import (
	"context"

	"github.com/spillway-go/spillway/lab/burn"
	"github.com/spillway-go/spillway/lab/callgrind"
	"github.com/spillway-go/spillway/lab/contestant"
)

func main() {
	contestant.Program(map[string]contestant.Role{"burn": contestant.Func(func(_ context.Context, turns []int) (any, error) {
		var blocks []func()
		for _, n := range turns {
			blocks = append(blocks, func() { burn.Turns(n) })
		}
		callgrind.Play(4, 7, blocks)
		return nil, nil
	})})
}
