// Command fan has the contestants of experiment F: ways to ask a database and caches at
// once, and what they are measured with. The lab builds and starts it.
package main

import (
	"github.com/spillway-go/spillway/lab/bubble"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/fan"
)

func main() { contestant.Program(roles()) }

func roles() map[string]contestant.Role {
	return map[string]contestant.Role{
		fan.RoleLookups: contestant.Func(playLookups),
		fan.RoleChange:  contestant.Func(playChange),
		fan.RoleHedging: contestant.Func(bubble.Func(hedge)),
		fan.RolePrinted: contestant.Func(playPrinted),
	}
}
