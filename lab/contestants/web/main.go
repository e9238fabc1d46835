// Command web has the contestants of experiment R: gin, fiber and other frameworks, and
// the routes that all of them serve. The lab builds and starts it.
package main

import (
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/routes"
)

func roles() map[string]contestant.Role {
	return map[string]contestant.Role{routes.RoleMeasure: contestant.Func(measure), routes.RoleLate: contestant.Func(lookLate)}
}

func main() { contestant.Program(roles()) }
