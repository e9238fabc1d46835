// Command virtual has the contestants whose clock is virtual and that need nothing else.
// The lab builds and starts it.
package main

import (
	"github.com/spillway-go/spillway/lab/bubble"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/reuse"
)

func main() {
	contestant.Program(map[string]contestant.Role{
		reuse.RoleIdle: contestant.Func(bubble.Func(reuse.Bursts)),
	})
}
