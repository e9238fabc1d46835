package limiter_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// A dry run starts under overload and is enforced after eight seconds. Work in the backend of
// ten slots then takes a second, because 1,500 pieces of work are in it. Regression: at three
// times the capacity, Demand was 50 and more until the last piece had ended.
func TestDemandIsHonestInADryRunAndAfterIt(t *testing.T) {
	for _, load := range []float64{0.5, 1.5, 3} {
		synctest.Test(t, func(t *testing.T) {
			l, err := limiter.New(limiter.Config{Law: limit.NewFixed(10), Mode: limiter.DryRun})
			if err != nil {
				t.Fatal(err)
			}
			slots := make(chan struct{}, 10)
			work := func(ctx context.Context) error {
				select {
				case slots <- struct{}{}:
				case <-ctx.Done():
					return ctx.Err()
				}
				defer func() { <-slots }()
				time.Sleep(20 * time.Millisecond)
				return ctx.Err()
			}
			r, began, next := rand.New(rand.NewPCG(1, 2)), time.Now(), 2*time.Second
			time.AfterFunc(8*time.Second, func() { l.SetMode(limiter.Enforce) })
			for time.Since(began) < 14*time.Second {
				time.Sleep(time.Duration(r.ExpFloat64() / (500 * load) * 1e9))
				go func() {
					ctx, cancel := context.WithTimeout(context.Background(), time.Second)
					defer cancel()
					_ = l.Do(ctx, work)
				}()
				if at := time.Since(began); at > next {
					next = at + 200*time.Millisecond
					if got := l.Stats().Demand / load; got < 0.8 || got > 1.2 {
						t.Errorf("after %v, at %v times the capacity, the demand is %.2f", at.Round(time.Millisecond), load, got*load)
					}
				}
			}
			time.Sleep(2 * time.Second)
		})
	}
}

// Regression: if a service no longer finished any work, Demand followed from its earlier work, or was
// zero without earlier work. Values of 0.1 to 1.0 looked like free capacity.
func TestDemandIsFarAboveOneWhereNothingIsDone(t *testing.T) {
	const died = 5 * time.Second
	one, many := limiter.Config{Law: limit.NewFixed(1)}, limiter.Config{Law: limit.NewFixed(100)}
	for name, c := range map[string]struct {
		cfg     limiter.Config
		healthy time.Duration // how long the service works
		rate    float64
		patient bool // callers wait an hour
		lease   bool // the lease ends after healthy
	}{
		"one slot, which hangs from the start on": {cfg: one, rate: 50, patient: true},
		"one slot, which hangs":                   {cfg: one, healthy: died, rate: 50, patient: true},
		"a lease without slots from the start on": {cfg: many, rate: 200, lease: true},
		"a lease without slots":                   {cfg: many, healthy: died, rate: 200, lease: true},
		"a dry run of a dead service":             {cfg: limiter.Config{Mode: limiter.DryRun}, rate: 200},
		"a dry run of a service that dies":        {cfg: limiter.Config{Mode: limiter.DryRun}, healthy: died, rate: 200},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, err := limiter.New(c.cfg)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r, began := rand.New(rand.NewPCG(1, 2)), time.Now()
			offer := func(until time.Duration, works bool) {
				for time.Since(began) < until {
					time.Sleep(time.Duration(r.ExpFloat64() / c.rate * 1e9))
					patience := time.Second
					if c.patient {
						patience = time.Hour
					}
					ctx, cancel := context.WithTimeout(ctx, patience)
					go func() {
						defer cancel()
						_ = l.Do(ctx, func(ctx context.Context) error {
							if works {
								time.Sleep(10 * time.Millisecond)
								return nil
							}
							<-ctx.Done()
							return ctx.Err()
						})
					}()
				}
			}
			offer(c.healthy, true)
			if got := l.Stats().Demand; got > 1 {
				t.Errorf("%s: before that the demand is %.2f", name, got)
			}
			if c.lease {
				l.SetLease(0, time.Now().Add(time.Hour), "test")
			}
			for range 10 {
				offer(time.Since(began)+time.Second, false)
				if got, at := l.Stats().Demand, time.Since(began)-c.healthy; at > 6*time.Second && (got < 1.5 || got > 100) {
					t.Errorf("%s: after %v without anything done the demand is %.2f", name, at.Round(time.Second), got)
				}
			}
			cancel() // ends the work that hangs
			l.SetLease(0, time.Time{}, "")
			ctx = t.Context()
			offer(time.Since(began)+20*time.Second, true)
			if got := l.Stats().Demand; got > 1 {
				t.Errorf("%s: twenty seconds after work is done again the demand is %.2f", name, got)
			}
			time.Sleep(20 * time.Second)
			if got := l.Stats().Demand; got > 0.01 {
				t.Errorf("%s: nothing comes any more, and the demand is %.2f", name, got)
			}
		})
	}
}
