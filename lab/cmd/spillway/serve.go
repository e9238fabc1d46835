package main

import (
	"errors"

	"github.com/spillway-go/spillway/examples/patientapi/app"
)

type serveCmd struct {
	app.Command `embed:""`
}

// Help teaches.
func (serveCmd) Help() string {
	return `The service that experiment H measures: patients by id over HTTP, from a SQLite file that is made on first use, with injected latency and errors like those of a database far away. Ctrl-C stops it gracefully and reports what it did.

Examples:
  spillway serve
  spillway serve --pattern naive --store simulated --min-latency 0s --max-latency 0s --error-rate 0
  curl http://localhost:8080/api/v1/patients/P000042
  spillway load --clients 200 --duration 10s http://localhost:8080/api/v1/patients/P000042

Exit codes: 0 stopped and all work in progress was finished; 1 something was left undone; 2 bad input, or the address is in use.`
}

func (c *serveCmd) Run(env *environment) error {
	err := c.Command.Run(env.ctx, env.stdout, env.stderr)
	if errors.Is(err, app.ErrUsage) {
		return badInput(err)
	}
	return err
}
