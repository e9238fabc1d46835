package main

import (
	"errors"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/lab/durable"
	"github.com/spillway-go/spillway/lab/internal/labtest"
)

// This process plays the roles of the program.
func TestMain(m *testing.M) {
	engineWait = await.Limit // on a busy disk
	labtest.Main(m, roles)
}

func TestEveryEngineKeepsWhatItAcknowledged(t *testing.T) {
	for name := range engines {
		var figures map[string]float64
		await.True(t, name+" acknowledges within a bout", func() bool {
			var err error
			figures, err = bout(t.Context(), durable.Bout{Contestant: name, Callers: 8, Bytes: 100, WarmUp: time.Millisecond, Timed: 100 * time.Millisecond, Folder: t.TempDir()})
			if err != nil && !errors.Is(err, errNothing) {
				t.Fatalf("%s: %v", name, err)
			}
			return err == nil
		})
		if missing, counted := figures["missing"]; missing != 0 || !counted {
			t.Errorf("%s: %v", name, figures)
		}
	}
}
