// Command durable has the engines of experiment durable. The lab builds and starts it.
package main

import (
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/durable"
)

var roles = map[string]contestant.Role{durable.RoleBout: contestant.Func(bout)}

func main() { contestant.Program(roles) }
