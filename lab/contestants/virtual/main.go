// Command virtual has the contestants whose clock is virtual and that need nothing else.
// The lab builds and starts it.
package main

import (
	"context"

	"github.com/spillway-go/spillway/lab/bubble"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/reuse"
)

func main() {
	contestant.Program(map[string]contestant.Role{reuse.RoleIdle: contestant.Func(idle)})
}

// idle is bursts and a minute of waiting, which nobody waits for.
func idle(ctx context.Context, b reuse.Burst) (map[string]float64, error) {
	return bubble.Run(ctx, func(ctx context.Context) (map[string]float64, error) { return reuse.Bursts(ctx, b) })
}
