package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/spillway-go/spillway/fanout"
	"github.com/spillway-go/spillway/lab/fan"
)

const (
	usual     = 10 * time.Millisecond // of an attempt, ± a fifth
	straggle  = time.Second
	straggler = .01 // share of the attempts that straggle
)

// playHedging returns quantiles of the calls while the sources are healthy, the share of
// second attempts of the first then and in the outage, in per cent, and how many first
// attempts were cancelled although the second had not won.
func playHedging(ctx context.Context, h fan.Hedging) (map[string]float64, error) {
	return inBubble(ctx, func(ctx context.Context) (map[string]float64, error) { return hedge(ctx, h) })
}

func hedge(ctx context.Context, h fan.Hedging) (map[string]float64, error) {
	s := &straggling{rng: rand.New(rand.NewPCG(h.Seed, 3))}
	add := func(sum *int, n int) { *sum += n }
	database, cache := fanout.Required("database", s.branch(0), add), fanout.Optional("cache", s.branch(1), add)
	if h.Hedged {
		database, cache = database.Hedged(nil), cache.Hedged(nil)
	}
	f, err := fanout.New(fanout.Config{Mode: fanout.Parallel}, database, cache)
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	for range h.Calls {
		began := time.Now()
		if got, err := f.Do(ctx, new(call)); err != nil || got.Value != 2 {
			return nil, errors.Join(err, errors.New("an answer is missing"))
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	out := map[string]float64{"p50": float64(took[len(took)/2]), "p99": float64(took[len(took)*99/100])}
	out["extra"] = s.share()
	out["cancelled"] = float64(s.cancelled)
	s.outage = true
	for range h.Calls / 10 {
		if _, err := f.Do(ctx, new(call)); err == nil {
			return nil, errors.New("a call succeeded in the outage")
		}
	}
	out["outage"] = s.share()
	return out, nil
}

// straggling are the sources: the database and the cache.
type straggling struct {
	mu            sync.Mutex
	rng           *rand.Rand
	outage        bool // every attempt fails slowly
	first, second int  // attempts
	cancelled     int
}

// call is the attempts of one call, by source.
type call [2]struct {
	began bool // the first attempt
	won   bool // an attempt has succeeded
}

// share lets the attempts of stragglers that lost end, and begins to count anew.
func (s *straggling) share() float64 {
	time.Sleep(2 * straggle)
	s.mu.Lock()
	defer s.mu.Unlock()
	share := 100 * float64(s.second) / float64(max(s.first, 1))
	s.first, s.second = 0, 0
	return share
}

func (s *straggling) branch(i int) func(context.Context, *call) (int, error) {
	return func(ctx context.Context, c *call) (int, error) {
		s.mu.Lock()
		original := !c[i].began
		c[i].began = true
		if original {
			s.first++
		} else {
			s.second++
		}
		fails := s.outage
		takes := time.Duration((.8 + .4*s.rng.Float64()) * float64(usual))
		if s.rng.Float64() < straggler || fails {
			takes = straggle
		}
		s.mu.Unlock()
		timer := time.NewTimer(takes)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			s.mu.Lock()
			defer s.mu.Unlock()
			if original && !c[i].won {
				s.cancelled++
			}
			return 0, ctx.Err()
		case <-timer.C:
		}
		if fails {
			return 0, errors.New("the source is down")
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		c[i].won = true
		return 1, nil
	}
}
