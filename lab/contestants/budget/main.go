// Command budget has the replicas of experiment budget and the engine that they share. The
// lab builds and starts it.
package main

import (
	"github.com/spillway-go/spillway/lab/budget"
	"github.com/spillway-go/spillway/lab/contestant"
)

var roles = map[string]contestant.Role{
	budget.RoleEngine:  contestant.Server(engine),
	budget.RoleReplica: contestant.Server(replica),
}

func main() { contestant.Program(roles) }
