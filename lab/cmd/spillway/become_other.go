//go:build !unix

package main

import (
	"errors"
	"os"
	"os/exec"
)

// become runs a program with the streams of this process and ends with its exit code.
// The console sends Ctrl-C to both; this process waits for the other.
func become(path string, args []string) error {
	program := exec.Command(path, args...)
	program.Stdin, program.Stdout, program.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := program.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		os.Exit(exit.ExitCode())
	}
	return err
}
