// Command pools has the worker pools of experiment pools: ants, pond, tunny and others.
// The lab builds and starts it.
package main

import (
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/pools"
)

var roles = map[string]contestant.Role{
	pools.RoleSubmit: contestant.Func(opener(openSubmitting).play),
	pools.RoleRefuse: contestant.Func(opener(openRefusing).play),
	pools.RoleCall:   contestant.Func(opener(openCalling).play),
	pools.RoleMemory: contestant.Func(weigh),
	pools.RoleBurst:  contestant.Func(flood),
}

func main() { contestant.Program(roles) }
