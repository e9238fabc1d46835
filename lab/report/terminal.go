package report

import (
	"io"

	"github.com/spillway-go/spillway/lab/results"
)

// Options say how the terminal summary looks.
type Options struct {
	Color bool   // ANSI colours
	Width int    // columns; 0: 80
	Dir   string // the results folder, named at the end; empty: not named
}

// Terminal writes the summary: verdicts, figures, demonstrations.
func Terminal(w io.Writer, res results.Results, runs []results.Run, opts Options) error {
	return nil
}
