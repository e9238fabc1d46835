package main

import (
	"embed"
	"slices"
)

// The help of commands that are programs of their own. A test compares these texts with what the
// programs print, so that nobody waits for a build to read them.
//
//go:embed help
var helpTexts embed.FS

// helpOf returns the help of a command of another program, if the arguments ask for the help.
func helpOf(command string, args []string) (text string, asked bool) {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	if !slices.Contains(args, "--help") && !slices.Contains(args, "-h") && (command != "queue" || len(args) > 0) {
		return "", false
	}
	for _, arg := range args {
		if own, err := helpTexts.ReadFile("help/" + command + "-" + arg + ".txt"); err == nil {
			return string(own), true
		}
	}
	own, err := helpTexts.ReadFile("help/" + command + ".txt")
	return string(own), err == nil
}

// spelledOut returns a line in which "help COMMAND" is "COMMAND --help", and --version is the
// command of that name.
func spelledOut(line []string) []string {
	switch {
	case len(line) > 0 && line[0] == "help":
		return append(slices.Clone(line[1:]), "--help")
	case len(line) == 1 && line[0] == "--version":
		return []string{"version"}
	}
	return line
}
