// Command audited plays the whole patient service, as its own command runs it.
package main

import (
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/db"
)

var roles = map[string]contestant.Role{db.RoleAudited: contestant.Server(audited)}

func main() { contestant.Program(roles) }
