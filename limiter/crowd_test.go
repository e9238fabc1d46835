package limiter

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/soak"
)

// callers is a number of callers of one kind that come at once, and come again when their call has ended.
type callers struct {
	kind  string
	n     int
	takes time.Duration // what each call waits for, which is no load
	stays time.Duration // when the caller gives up, and the call ends; zero: never
	quick time.Duration // until then each call ends within a moment
}

// come lets the callers call until the time comes to an end.
func (c callers) come(t *testing.T, s *service, ended time.Time) {
	began := time.Now()
	for range c.n {
		s.all.Go(func() {
			for time.Now().Before(ended) {
				ctx, cancel := context.WithCancel(spillway.WithKind(t.Context(), c.kind))
				if c.stays > 0 {
					ctx, cancel = context.WithTimeout(ctx, c.stays)
				}
				takes := c.takes
				if time.Since(began) < c.quick {
					takes = 5 * time.Millisecond
				}
				err := s.Do(ctx, func(ctx context.Context) error {
					select {
					case <-time.After(takes):
					case <-ctx.Done():
					}
					return ctx.Err()
				})
				cancel()
				if err != nil || takes < c.takes {
					time.Sleep(100 * time.Millisecond)
				}
			}
		})
	}
}

// Crowds that hold slots and use nothing scarce stop nobody, of one kind or of several.
func TestACrowdStopsNobody(t *testing.T) {
	soak.WithoutRace(t)
	for name, crowds := range map[string][]callers{
		"40 polls":           {{kind: "poll", n: 40, takes: 20 * time.Second}},
		"100 polls":          {{kind: "poll", n: 100, takes: 20 * time.Second}},
		"300 polls":          {{kind: "poll", n: 300, takes: 20 * time.Second}},
		"100 polls that end": {{kind: "poll", n: 100, takes: 20 * time.Second, stays: 2 * time.Second}},
		"a dependency of two kinds hangs": {
			{kind: "sign-up", n: 40, takes: time.Hour, quick: 10 * time.Second, stays: 30 * time.Second},
			{kind: "reset", n: 40, takes: time.Hour, quick: 10 * time.Second, stays: 10 * time.Second},
		},
		"three kinds": {
			{kind: "poll", n: 60, takes: 20 * time.Second},
			{kind: "report", n: 60, takes: 30 * time.Second},
			{kind: "mail", n: 60, takes: 40 * time.Second},
		},
		"many kinds": {
			{kind: "a", n: 20, takes: 20 * time.Second}, {kind: "b", n: 20, takes: 20 * time.Second}, {kind: "c", n: 20, takes: 20 * time.Second},
			{kind: "d", n: 20, takes: 20 * time.Second}, {kind: "e", n: 20, takes: 20 * time.Second}, {kind: "f", n: 20, takes: 20 * time.Second},
			{kind: "g", n: 20, takes: 20 * time.Second}, {kind: "h", n: 20, takes: 2 * time.Second, stays: time.Second},
		},
	} {
		for _, before := range []time.Duration{0, 30 * time.Second} {
			if before == 0 && (len(crowds) > 1 || crowds[0].stays > 0) {
				continue // a limiter that has seen nothing finish cannot tell such crowds from a backend that hangs
			}
			t.Run(name+", after "+before.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := serve(t, 16, Config{})
					others := traffic{perSecond: 60, takes: 5 * time.Millisecond, patience: time.Second}
					send(s, others, before, time.Second)
					for _, c := range crowds {
						c.come(t, s, time.Now().Add(60*time.Second))
					}
					first := send(s, others, 5*time.Second, time.Second)
					later := send(s, others, 50*time.Second, time.Second)
					st := s.Stats()
					t.Logf("%.3f in the first seconds, then %.3f; %d parked, limit %d", first.share(), later.share(), st.Parked, st.Limit)
					soon, most := 0.7, 0.5
					if before == 0 { // no usual time is known: the first trial begins after a second
						soon = 0
					}
					if first.share() < soon || later.share() < most {
						t.Errorf("%.3f of the others were answered in time in the first seconds, then %.3f", first.share(), later.share())
					}
					s.all.Wait()
					atRest(t, s.Limiter)
				})
			})
		}
	}
}
