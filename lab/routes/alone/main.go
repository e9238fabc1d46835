// Command alone contains only the contestants of experiment R, so that the lab can
// build them a second time with another encoding/json.
package main

import (
	"fmt"
	"os"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/routes"
)

func main() {
	code, ok := contestant.Main(routes.Roles())
	if !ok {
		fmt.Fprintln(os.Stderr, "this is a part of the laboratory: run 'spillway lab R'")
		code = 2
	}
	os.Exit(code)
}
