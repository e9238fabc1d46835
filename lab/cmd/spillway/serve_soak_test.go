//go:build soak

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/lab/contestant"
)

// Passing means that the commands of other programs print their help.
func TestSoakTheHelpOfOtherProgramsIsPrinted(t *testing.T) {
	for args, of := range map[string]struct{ program, says string }{
		"serve --help": {service, "--pattern="},
		"queue":        {queue, "spillway queue retry --all"},
	} {
		if _, err := contestant.Build(t.Context(), contestant.Spec{Program: of.program}, t.Output()); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], strings.Fields(args)...)
		cmd.Env = append(os.Environ(), asCommand+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), of.says) {
			t.Errorf("%s: %v, want %q in\n%s", args, err, of.says, out)
		}
	}
}
