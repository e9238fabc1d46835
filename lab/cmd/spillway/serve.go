package main

import (
	"fmt"

	"github.com/spillway-go/spillway/lab/contestant"
)

// service is the patient API's own command.
const service = "github.com/spillway-go/spillway/examples/patientapi/cmd/patientapi"

type serveCmd struct {
	Args []string `arg:"" optional:"" help:"Arguments of the service; see spillway serve --help."`
}

// Run builds the service, once, and becomes it.
func (c *serveCmd) Run(env *environment) error {
	path, err := contestant.Build(env.ctx, contestant.Spec{Program: service}, env.stderr)
	if err != nil {
		return fmt.Errorf("the service was not started: %w", err)
	}
	return become(path, append([]string{"serve"}, c.Args...))
}
