package patterns

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limiter"
)

// A signal presses the bound of the patterns that have a limiter, and what it refuses
// says so.
func TestSignalsPressTheLimiters(t *testing.T) {
	for _, name := range []string{Limiter, Adaptive} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				level := 0.0
				r, err := New(name, Config{Workers: 8, Signals: []limiter.Signal{limiter.Gauge("pool wait", func() float64 { return level }, 1)}})
				if err != nil {
					t.Fatal(err)
				}
				level = 2
				var named *spillway.Rejection
				for range 200 { // two at a time, for longer than it takes to press
					permits := []limiter.Permit{}
					for range 2 {
						permit, err := r.Limiter().TryAcquire(t.Context())
						if rejection, ok := errors.AsType[*spillway.Rejection](err); ok {
							named = rejection
							continue
						}
						permits = append(permits, permit)
					}
					time.Sleep(20 * time.Millisecond)
					for _, p := range permits {
						p.Done(nil)
					}
				}
				if named == nil || named.Reason != spillway.Signal || named.Cause != "pool wait" {
					t.Errorf("refused with %v", named)
				}
				if err := r.Drain(context.Background()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
