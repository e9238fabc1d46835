// Command ladder has the servers of experiment G7 and the client that loads them:
// fasthttp, net/http and a small server whose savings are switched one by one. The lab
// builds and starts it.
package main

import (
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/ladder"
)

func roles() map[string]contestant.Role {
	return map[string]contestant.Role{ladder.RolePlay: contestant.Func(play), ladder.RoleClient: load}
}

func main() { contestant.Program(roles()) }
