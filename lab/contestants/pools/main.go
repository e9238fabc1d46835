// Command pools has the worker pools of experiment pools: ants, pond, tunny and others.
// The lab builds and starts it.
package main

import (
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/pools"
	"github.com/spillway-go/spillway/lab/turns"
)

var roles = map[string]contestant.Role{
	pools.RoleSubmit: turns.Role(nil, opener(openSubmitting).player),
	pools.RoleRefuse: turns.Role(nil, opener(openRefusing).player),
	pools.RoleCall:   turns.Role(nil, opener(openCalling).player),
	pools.RoleMemory: contestant.Func(weigh),
	pools.RoleBurst:  contestant.Func(flood),
}

func main() { contestant.Program(roles) }
