package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/fanout"
	"github.com/spillway-go/spillway/lab/fan"
)

// hedge returns quantiles of the calls while the sources are healthy, the share of
// second attempts of the first then and in the outage, in per cent, and how many first
// attempts were cancelled although the second had not won.
func hedge(ctx context.Context, h fan.Hedging) (map[string]float64, error) {
	var s straggling
	add := func(sum *int, n int) { *sum += n }
	database, cache := fanout.Required("database", s.branch(0), add), fanout.Optional("cache", s.branch(1), add)
	if h.Hedged {
		database, cache = database.Hedged(nil), cache.Hedged(nil)
	}
	f, err := fanout.New(fanout.Config{Mode: fanout.Parallel}, database, cache)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(h.Seed, 3))
	var took []time.Duration
	for range h.Calls {
		began := time.Now()
		if got, err := f.Do(ctx, newCall(rng)); err != nil || got.Value != 2 {
			return nil, errors.Join(err, errors.New("an answer is missing"))
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	out := map[string]float64{
		"p50": float64(took[len(took)/2]), "p99": float64(took[len(took)*99/100]), "extra": s.share(),
		"cancelled": float64(s.cancelled.Load()), // in the outage a database that fails cancels the cache
	}
	for range h.Calls / 10 {
		if _, err := f.Do(ctx, &call{fails: true}); err == nil {
			return nil, errors.New("a call succeeded in the outage")
		}
	}
	out["outage"] = s.share()
	return out, nil
}

const straggle = time.Second

// call is what happens to one call, by source: the database and the cache.
type call struct {
	fails    bool // every attempt, slowly
	takes    [2][2]time.Duration
	attempts [2]atomic.Int32
	won      [2]atomic.Bool // an attempt has succeeded
}

// newCall decides beforehand how long every attempt takes: 10 ms ± 20 %, and one in a
// hundred straggles.
func newCall(rng *rand.Rand) *call {
	c := new(call)
	for i := range c.takes {
		for n := range c.takes[i] {
			c.takes[i][n] = time.Duration((.8 + .4*rng.Float64()) * float64(10*time.Millisecond))
			if rng.Float64() < .01 {
				c.takes[i][n] = straggle
			}
		}
	}
	return c
}

// straggling counts attempts: first and second ones, and the first that were cancelled.
type straggling struct {
	made      [2]atomic.Int64
	cancelled atomic.Int64
}

// share lets the attempts of stragglers that lost end, and begins to count anew.
func (s *straggling) share() float64 {
	time.Sleep(2 * straggle)
	return 100 * float64(s.made[1].Swap(0)) / float64(max(s.made[0].Swap(0), 1))
}

func (s *straggling) branch(i int) func(context.Context, *call) (int, error) {
	return func(ctx context.Context, c *call) (int, error) {
		n := c.attempts[i].Add(1) - 1
		takes := c.takes[i][n]
		if c.fails {
			takes = straggle
		}
		s.made[n].Add(1)
		select {
		case <-ctx.Done():
			if n == 0 && !c.won[i].Load() {
				s.cancelled.Add(1)
			}
			return 0, ctx.Err()
		case <-time.After(takes):
		}
		if c.fails {
			return 0, errors.New("the source is down")
		}
		c.won[i].Store(true)
		return 1, nil
	}
}
