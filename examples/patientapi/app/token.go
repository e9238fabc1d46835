package app

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/examples/patientapi/token"
)

// TokenCommand makes a token with the development keys, for kong.
type TokenCommand struct {
	Role    string        `help:"As whom: clinician, administrator, export-job or patient." default:"clinician" enum:"clinician,administrator,export-job,patient"`
	Patient string        `help:"Whose record is the own one; with --role patient." placeholder:"ID"`
	Scope   []string      `help:"What for, such as user/Patient.rs; all that the role may do unless given." sep:"none" placeholder:"SCOPE"`
	TTL     time.Duration `name:"ttl" help:"How long it is good." default:"8h"`

	KeyFolder `embed:""`
}

// Help is for kong, which shows it between the usage and the flags.
func (TokenCommand) Help() string {
	return `A service that was started without --jwks takes these tokens, if it has the same development keys.

Examples:
  export SPILLWAY_LOAD_HEADER="Authorization: Bearer $(patientapi token)"
  patientapi token --role patient --patient P000001
  patientapi token --scope user/Observation.rs --scope user/MedicationRequest.r --ttl 10m

"spillway token" is the same as "patientapi token".`
}

// Run writes a token to stdout.
func (c *TokenCommand) Run(stdout io.Writer) error {
	for scope := range strings.FieldsSeq(strings.Join(c.Scope, " ")) {
		if !access.ValidScope(scope) {
			return usagef("scope %q opens nothing: want %s", scope, access.ScopeShapes)
		}
		if role := access.Role(c.Role); !access.Opens(role, scope) {
			return usagef("scope %q opens nothing to the role %s: it may do what %s allows, or a part of that", scope, role, strings.Join(access.Scopes(role), " "))
		}
	}
	s, err := c.signer()
	if err != nil {
		return err
	}
	text, err := s.Mint(token.Grant{Role: access.Role(c.Role), Patient: c.Patient, Scopes: c.Scope, Lifetime: c.TTL})
	if err != nil {
		return usage(err)
	}
	_, err = fmt.Fprintln(stdout, text)
	return err
}
