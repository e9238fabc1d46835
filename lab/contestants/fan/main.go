// Command fan has the contestants of experiment F: ways to ask a database and caches at
// once, and what they are measured with. The lab builds and starts it.
package main

import (
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/fan"
)

func main() { contestant.Program(roles()) }

func roles() map[string]contestant.Role {
	all := fan.Demonstrations.By(staged).Roles()
	all[fan.RoleLookups] = contestant.Func(playLookups)
	all[fan.RoleChange] = contestant.Func(playChange)
	all[fan.RoleHedging] = contestant.Func(playHedging)
	all[rolePanic] = contestant.Func(panicIn)
	return all
}
