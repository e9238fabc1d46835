// Command pools has the worker pools of experiment pools: ants, pond, tunny and others.
// The lab builds and starts it.
package main

import (
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/pools"
)

func roles() map[string]contestant.Role {
	return map[string]contestant.Role{
		pools.RoleBout:   contestant.Func(play),
		pools.RoleMemory: contestant.Func(weigh),
		pools.RoleBurst:  contestant.Func(flood),
		pools.RoleSizing: contestant.Func(size),
	}
}

func main() { contestant.Program(roles()) }
