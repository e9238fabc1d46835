package main

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The backend does four pieces of work at a time, of 10 ms each.
func TestARecordingIsWhatTheBackendDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := make(chan struct{}, 4)
		r, err := record(t.Context(), func(context.Context) error {
			slots <- struct{}{}
			time.Sleep(10 * time.Millisecond)
			<-slots
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range r.levels {
			want := 100 * float64(min(l.workers, 4))
			longest, wantLongest := l.latencies[len(l.latencies)-1], 10*time.Millisecond*time.Duration((l.workers+3)/4)
			if math.Abs(l.rate-want) > .05*want || longest < wantLongest {
				t.Errorf("%d workers: %.0f a second and at most %v, want %.0f and %v", l.workers, l.rate, longest, want, wantLongest)
			}
		}
		if r.at != 4 || len(r.series) != 200 || len(r.step) != 20 {
			t.Errorf("at %d workers, %d values in the series, and %d in the step", r.at, len(r.series), len(r.step))
		}
		for _, values := range [][]float64{r.series, r.step} {
			for _, v := range values {
				if v < .79 || v > 1.1 { // the first answers after a step come 10 ms later
					t.Errorf("a backend without noise did %.2f of its mean", v)
				}
			}
		}
		if text := r.String(); !strings.Contains(text, "\nlevel 4 400.0 10 10 ") || !strings.Contains(text, "\nseries 4 1.00 ") {
			t.Error(text)
		}
	})
}
