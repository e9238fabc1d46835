package main

import (
	"errors"

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
	switch {
	case env.ctx.Err() != nil:
		return errors.New("interrupted before the service was started")
	case err != nil:
		return err
	}
	return become(path, append([]string{"serve"}, c.Args...))
}
