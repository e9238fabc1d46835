package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spillway-go/spillway/load/loadgen"
)

// loadCause is what outcomes came from: a status, or an error. Errors that differ in numbers only
// are one row, with the text of the first.
type loadCause struct {
	Outcome   string `json:"outcome"`
	Status    int    `json:"status,omitempty"`
	Reason    string `json:"reason,omitempty"` // Spillway-Reason of a refusal
	Error     string `json:"error,omitempty"`
	Generator bool   `json:"generator,omitempty"` // the error is of the generator's own machine
	Count     uint64 `json:"count"`
}

func summarizeCauses(causes []loadgen.Cause) (rows []loadCause) {
	for _, c := range causes {
		row := loadCause{Outcome: c.Outcome.String(), Status: c.Status, Error: c.Text, Generator: c.Local, Count: c.Count}
		if c.Outcome == loadgen.Rejected && c.Status > 0 {
			row.Reason, row.Error = c.Text, ""
		}
		rows = append(rows, row)
	}
	return rows
}

// String is for people.
func (c loadCause) String() string {
	var parts []string
	if c.Status > 0 {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%d %s", c.Status, http.StatusText(c.Status))))
	}
	if c.Outcome == loadgen.Timeout.String() && c.Status > 0 {
		parts = append(parts, "too late")
	}
	if c.Reason != "" {
		parts = append(parts, c.Reason)
	}
	if c.Error != "" {
		parts = append(parts, c.Error)
	}
	text := strings.Join(parts, ", ")
	if c.Generator {
		text = "the generator's machine: " + text
	}
	return text
}

func (s loadSummary) printCauses(w io.Writer) {
	for i, c := range s.Causes {
		if i == 0 {
			fmt.Fprintln(w, "\nby status and error:")
		}
		fmt.Fprintf(w, "%-9s %9d  %s\n", c.Outcome, c.Count, c)
	}
}

// loadPhase is a part of requests: dns, connect, tls, or first byte.
type loadPhase struct {
	Phase string          `json:"phase"`
	Count uint64          `json:"count"` // requests that had the phase
	Took  *latencySummary `json:"took_ms"`
}

func summarizePhases(all []loadgen.Phase) (phases []loadPhase) {
	for i := range all {
		phases = append(phases, loadPhase{all[i].Name, all[i].Took.Count(), milliseconds(&all[i].Took)})
	}
	return phases
}

func (s loadSummary) printPhases(w io.Writer) {
	for i, p := range s.Phases {
		if i == 0 {
			fmt.Fprintf(w, "\n%-10s %8s %9s %9s %9s %9s  (ms)\n", "phase", "count", "mean", "p50", "p99", "max")
		}
		fmt.Fprintf(w, "%-10s %8d %9.2f %9.2f %9.2f %9.2f\n", p.Phase, p.Count, p.Took.Mean, p.Took.P50, p.Took.P99, p.Took.Max)
	}
}
