package fan

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/spillway-go/spillway/fanout"
	"github.com/spillway-go/spillway/lab/bubble"
)

// hedging is two sources that are slow now and then, called repeatedly in virtual
// time, and then an outage of both.
type hedging struct {
	Hedged    bool
	Calls     int           // while the sources are healthy
	Outage    int           // calls during which every attempt fails slowly
	Usual     time.Duration // of an attempt, ± a fifth
	Straggle  time.Duration
	Straggler float64 // share of the attempts that straggle
	Seed      uint64
}

// hedged is the result.
type hedged struct {
	P50, P99  float64 // ns, of the calls while the sources are healthy
	Extra     float64 // second attempts ÷ first attempts, then
	Outage    float64 // and in the outage
	Cancelled float64 // first attempts that were cancelled although the second had not won
}

func playHedging(ctx context.Context, h hedging) (hedged, error) {
	return bubble.Run(ctx, h.play)
}

// race is one branch of one call.
type race struct {
	mu       sync.Mutex
	attempts int
	won      bool // an attempt has succeeded
}

// both are the races of a call: the database's and the cache's.
type both [2]race

func (h hedging) play(ctx context.Context) (out hedged, err error) {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(h.Seed, 3))
	outage, cancelled := false, 0
	first, second := 0, 0
	draw := func() (d time.Duration, fail bool) {
		mu.Lock()
		defer mu.Unlock()
		straggles, spread := rng.Float64() < h.Straggler, .8+.4*rng.Float64()
		if outage || straggles {
			return h.Straggle, outage
		}
		return time.Duration(spread * float64(h.Usual)), false
	}
	branch := func(i int) func(context.Context, *both) (int, error) {
		return func(ctx context.Context, b *both) (int, error) {
			r := &b[i]
			r.mu.Lock()
			original := r.attempts == 0
			r.attempts++
			r.mu.Unlock()
			mu.Lock()
			if original {
				first++
			} else {
				second++
			}
			mu.Unlock()
			d, fail := draw()
			timer := time.NewTimer(d)
			defer timer.Stop()
			select {
			case <-ctx.Done():
				r.mu.Lock()
				defer r.mu.Unlock()
				if original && !r.won {
					mu.Lock()
					cancelled++
					mu.Unlock()
				}
				return 0, ctx.Err()
			case <-timer.C:
			}
			if fail {
				return 0, errOutage
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.won = true
			return 1, nil
		}
	}
	add := func(sum *int, n int) { *sum += n }
	database, cache := fanout.Required("database", branch(0), add), fanout.Optional("cache", branch(1), add)
	if h.Hedged {
		database, cache = database.Hedged(nil), cache.Hedged(nil)
	}
	f, err := fanout.New(fanout.Config{Mode: fanout.Parallel}, database, cache)
	if err != nil {
		return out, err
	}
	var took []float64
	for range h.Calls {
		began := time.Now()
		if got, err := f.Do(ctx, new(both)); err != nil || got.Value != 2 {
			return out, errors.Join(err, errors.New("an answer is missing"))
		}
		took = append(took, float64(time.Since(began)))
	}
	time.Sleep(2 * h.Straggle) // stragglers that lost end
	slices.Sort(took)
	out.P50, out.P99 = took[len(took)/2], took[len(took)*99/100]
	mu.Lock()
	out.Extra, out.Cancelled = float64(second)/float64(first), float64(cancelled)
	first, second, outage = 0, 0, true
	mu.Unlock()
	for range h.Outage {
		if _, err := f.Do(ctx, new(both)); err == nil {
			return out, errors.New("a call succeeded in the outage")
		}
	}
	time.Sleep(2 * h.Straggle)
	mu.Lock()
	defer mu.Unlock()
	out.Outage = float64(second) / float64(max(first, 1))
	return out, nil
}

var errOutage = errors.New("the source is down")
