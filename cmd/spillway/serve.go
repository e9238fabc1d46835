package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
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
var programs = map[string]string{"serve": service, "token": service, "audit": service, "queue": queue}

// elsewhere is a command of another program.
type elsewhere struct {
	Args []string `arg:"" optional:"" help:"Arguments of that command; see its --help."`
}

// Run becomes the command of the same name, or prints the help of the command, which is at hand.
func (c *elsewhere) Run(env *environment, chosen *kong.Context) error {
	name := chosen.Selected().Name
	if text, asked := helpOf(name, c.Args); asked {
		_, err := io.WriteString(env.stdout, text)
		return err
	}
	return become(env, programs[name], name, c.Args)
}

// programPath returns the path of a program: beside this one, or built, once.
func programPath(env *environment, program string) (string, error) {
	own, err := os.Executable()
	if err != nil {
		own = os.Args[0]
	}
	beside := filepath.Join(filepath.Dir(own), "spillway-"+path.Base(program))
	if runtime.GOOS == "windows" {
		beside += ".exe"
	}
	if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
		return beside, nil
	}
	built, err := contestant.Build(env.ctx, contestant.Spec{Program: program}, env.stderr)
	if err != nil && env.ctx.Err() == nil {
		err = fmt.Errorf("%w; or put it beside this program, in a clone by: go build -o %s %s", err, beside, program)
	}
	return built, err
}

// become finds a program and becomes a command of it, which then has the streams, the signals and
// the exit code of this process.
func become(env *environment, program, command string, args []string) error {
	path, err := programPath(env, program)
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
