//go:build soak

package main

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/durable"
)

// Passing means that every engine acknowledges records for a second, of which none is
// missing, and that the figures of a bout are there.
func TestSoakEveryEngineAcknowledgesAndKeeps(t *testing.T) {
	for name := range engines {
		figures, err := bout(t.Context(), durable.Bout{Contestant: name, Callers: 8, Bytes: 100, WarmUp: time.Millisecond, Timed: time.Second, Folder: t.TempDir()})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		soak.AtMost(t, name+": records that are missing", figures["missing"], 0, "", "what was acknowledged is kept")
		soak.AtLeast(t, name+": p99", figures["p99"], figures["p50"], "", "a bout in which nothing was acknowledged has no quantiles")
	}
}
