// Command ladder has the servers of experiment G7 and the client that loads them:
// fasthttp, net/http and a small server whose savings are switched one by one. The lab
// builds and starts it.
package main

import (
	"fmt"
	"os"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/ladder"
)

func roles() map[string]contestant.Role {
	return map[string]contestant.Role{ladder.RoleServer: runServer, ladder.RoleClient: contestant.Func(runClient)}
}

func main() {
	code, ok := contestant.Main(roles())
	if !ok {
		fmt.Fprintln(os.Stderr, "this is a part of the laboratory: run 'spillway lab G7'")
		code = 2
	}
	os.Exit(code)
}
