// Command audited plays the whole patient service, as its own command runs it.
package main

import (
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/overload"
)

var roles = map[string]contestant.Role{overload.RoleAudited: contestant.Server(audited)}

func main() { contestant.Program(roles) }
