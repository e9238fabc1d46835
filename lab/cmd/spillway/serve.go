package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/spillway-go/spillway/lab/contestant"
)

// Commands with modules of their own, so that this one stays light.
const (
	service = "github.com/spillway-go/spillway/examples/patientapi/cmd/patientapi"
	queue   = "github.com/spillway-go/spillway/jobqueue/cmd/queue"
)

// programs are those that have a command.
var programs = map[string]string{"serve": service, "token": service, "audit": service, "agent": agentProgram, "queue": queue}

// elsewhere is a command of another program.
type elsewhere struct {
	Args []string `arg:"" optional:"" help:"Arguments of that command; see its --help."`
}

// Run becomes the command of the same name.
func (c *elsewhere) Run(env *environment, chosen *kong.Context) error {
	name := chosen.Selected().Name
	return become(env, programs[name], name, c.Args)
}

// become builds a program, once, and becomes a command of it, which then has the
// streams, the signals and the exit code of this process.
func become(env *environment, program, command string, args []string) error {
	path, err := contestant.Build(env.ctx, contestant.Spec{Program: program}, env.stderr)
	if err != nil {
		return fmt.Errorf("spillway %s was not started: %w", command, err)
	}
	args = append([]string{command}, args...)
	if err := syscall.Exec(path, append([]string{path}, args...), os.Environ()); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	// On Windows the console sends Ctrl-C to both, and this process waits for the other.
	child := exec.Command(path, args...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = child.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		os.Exit(exit.ExitCode())
	}
	return err
}
