package limiter

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/limit"
)

// Do inside Do. Regression: 8 of 2,000 calls a second were done, and State was "fixed".
func TestTheStateNamesCallsInsideCalls(t *testing.T) {
	soak.WithoutRace(t)
	for name, c := range map[string]struct {
		cfg    Config
		layers int // limiters, from the outside in
	}{
		"one limiter, fixed":    {Config{Law: limit.NewFixed(10)}, 1},
		"one limiter, adaptive": {Config{}, 1},
		"one for each layer":    {Config{}, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			outer := configured(t, c.cfg)
			inner := outer
			if c.layers == 2 {
				inner = configured(t, Config{})
			}
			work := func(context.Context) error { time.Sleep(2 * time.Millisecond); return nil }
			var counted atomic.Int64
			named := 0
			for i := range 30 {
				for range 2000 {
					time.Sleep(time.Second / 2000)
					go func() {
						err := outer.Do(context.Background(), func(ctx context.Context) error {
							time.Sleep(30 * time.Millisecond)
							return inner.Do(ctx, work)
						})
						if err == nil && i >= 10 {
							counted.Add(1)
						}
					}()
				}
				if i >= 10 && strings.Contains(outer.Stats().State, "Do inside Do") {
					named++
				}
			}
			done := counted.Load()
			switch {
			case c.layers == 2 && (done < 39_000 || named > 0):
				t.Errorf("%s: %d of 40,000 were done, the state named calls inside calls in %d of 20 seconds", name, done, named)
			case c.layers == 1 && done < 20_000 && named < 8: // where work is parked, the trouble comes and goes
				t.Errorf("%s: %d of 40,000 were done, the state named calls inside calls in %d of 20 seconds: %s", name, done, named, outer.Stats().State)
			}
			time.Sleep(time.Minute)
			atRest(t, outer)
		})
	}
}

// Without waiting callers, nested calls are not the cause.
func TestTheStateNamesCallsInsideCallsOnlyWhereWorkWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 2, 10)
		p := acquire(t, l)
		q := acquire(t, l)
		time.Sleep(time.Minute)
		if s := l.Stats().State; !strings.HasPrefix(s, "nothing has ended for 1m0s") || strings.Contains(s, nested) {
			t.Errorf("nothing waits: %s", s)
		}
		go func() { acquire(t, l).Done(nil) }()
		synctest.Wait()
		if s := l.Stats().State; !strings.HasSuffix(s, nested) {
			t.Errorf("work waits: %s", s)
		}
		p.Done(nil)
		q.Done(nil)
		synctest.Wait()
		atRest(t, l)
	})
}
