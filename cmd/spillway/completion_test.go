package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// completed is what a shell is told when these words were typed.
func completed(t *testing.T, words ...string) (found []string) {
	t.Helper()
	_, stdout, _ := command(t, append([]string{completeArg}, words...)...)
	for line := range strings.Lines(stdout) {
		word, _, _ := strings.Cut(line, "\t")
		found = append(found, word)
	}
	return found
}

func TestShellsAreToldWhatMayComeNext(t *testing.T) {
	for name, test := range map[string]struct{ typed, all string }{
		"commands":               {"", "demo lab load capacity compare sim proxy serve token audit queue completion version"},
		"the begin of one":       {"lo", "load"},
		"commands of a command":  {"lab sel", "selftest"},
		"by another name":        {"lab h --qui", "--quick"},
		"flags":                  {"sim --ex", "--example"},
		"flags of those above":   {"sim --co", "--config"},
		"after a flag's value":   {"load --rate 5 --cl", "--clients"},
		"a value that is free":   {"load --rate ", ""},
		"after a value by =":     {"load --rate=5 --cl", "--clients"},
		"an argument":            {"completion ", "bash zsh fish"},
		"a scenario":             {"sim retry", "retry-storm"},
		"after the argument":     {"sim burst ", ""},
		"after a flag with none": {"sim --json retry", "retry-storm"},
		"another program's":      {"serve --p", ""},
		"nonsense":               {"no such thing", ""},
	} {
		if got := strings.Join(completed(t, strings.Split(test.typed, " ")...), " "); got != test.all {
			t.Errorf("%s: after %q comes %q, want %q", name, test.typed, got, test.all)
		}
	}
}

func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("SKIPPED, the script was not tried: there is no bash")
	}
	_, script, _ := command(t, "completion", "bash")
	dir := t.TempDir()
	name := filepath.Join(dir, "spillway")
	if err := os.Symlink(os.Args[0], name); err != nil {
		t.Fatal(err)
	}
	for typed, want := range map[string]string{"sim re": "retry-storm", "sim --config = x": "", "lab H --conte": "--contestant", "compl": "completion"} {
		words := append([]string{name}, strings.Split(typed, " ")...)
		try := script + `COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _spillway "$1"; printf '%s\n' "${COMPREPLY[@]}"`
		cmd := exec.CommandContext(t.Context(), bash, slices.Concat([]string{"--norc", "-c", try, "bash"}, words)...)
		cmd.Env = append(os.Environ(), asCommand+"=1")
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%q is completed to %q, want %q (%v)", typed, got, want, err)
		}
	}
}
