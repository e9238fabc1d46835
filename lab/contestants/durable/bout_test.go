package main

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/durable"
	"github.com/spillway-go/spillway/lab/internal/labtest"
)

// This process plays the roles of the program.
func TestMain(m *testing.M) { labtest.Main(m, roles) }

func TestEveryEngineKeepsWhatItAcknowledged(t *testing.T) {
	for name := range engines {
		figures, err := bout(t.Context(), durable.Bout{Contestant: name, Callers: 8, Bytes: 100, WarmUp: time.Millisecond, Timed: 100 * time.Millisecond, Folder: t.TempDir()})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		missing, counted := figures["missing"]
		if missing != 0 || counted != (name != durable.File) {
			t.Errorf("%s: %v", name, figures)
		}
	}
}
