// Command web has the contestants of experiment R: gin, fiber and other frameworks, and
// the routes that all of them serve. The lab builds and starts it.
package main

import (
	"fmt"
	"os"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/routes"
)

func roles() map[string]contestant.Role {
	return map[string]contestant.Role{routes.RoleMeasure: contestant.Func(measure), routes.RoleLate: contestant.Func(lookLate)}
}

func main() {
	code, ok := contestant.Main(roles())
	if !ok {
		fmt.Fprintln(os.Stderr, "this is a part of the laboratory: run 'spillway lab R'")
		code = 2
	}
	os.Exit(code)
}
