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

// A dry run that starts under overload, and is enforced after eight seconds. What a
// backend of ten slots then does takes a second, because 1,500 are in it; the demand
// was 50 and more until the last of them had ended, where 3 are offered.
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
