package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/spillway-go/spillway/lab/contestant"
)

// service is the patient API's own command.
const service = "github.com/spillway-go/spillway/examples/patientapi/cmd/patientapi"

type serveCmd struct {
	Args []string `arg:"" optional:"" help:"Arguments of the service; see spillway serve --help."`
}

// Run builds the service, once, and becomes it: the service then has the streams, the
// signals and the exit code of this process.
func (c *serveCmd) Run(env *environment) error {
	path, err := contestant.Build(env.ctx, contestant.Spec{Program: service}, env.stderr)
	if err != nil {
		return fmt.Errorf("the service was not started: %w", err)
	}
	args := append([]string{"serve"}, c.Args...)
	if err := syscall.Exec(path, append([]string{path}, args...), os.Environ()); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	// On Windows the console sends Ctrl-C to both, and this process waits for the other.
	program := exec.Command(path, args...)
	program.Stdin, program.Stdout, program.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = program.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		os.Exit(exit.ExitCode())
	}
	return err
}
