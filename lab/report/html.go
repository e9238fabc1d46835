package report

import (
	"io"

	"github.com/spillway-go/spillway/lab/results"
)

// HTML writes the report as one self-contained page.
func HTML(w io.Writer, res results.Results, runs []results.Run) error {
	return nil
}
