package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/bubble"
	"github.com/spillway-go/spillway/lab/burn"
	"github.com/spillway-go/spillway/lab/fan"
	"github.com/spillway-go/spillway/lab/turns"
)

// playLookups measures the tables one after the other.
func playLookups(ctx context.Context, l fan.Lookups) ([][]fan.Figures, error) {
	if l.Kind == fan.Virtual {
		return bubble.Func(tables)(ctx, l)
	}
	return tables(ctx, l)
}

func tables(ctx context.Context, l fan.Lookups) (out [][]fan.Figures, err error) {
	for _, t := range l.Tables {
		l.Seed++
		figures, err := play(ctx, l, t)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Load, err)
		}
		out = append(out, figures)
	}
	return out, nil
}

// play measures the contestants of a table in turns. Each is kept for all rounds, so
// that an adaptive one has adapted.
func play(ctx context.Context, l fan.Lookups, t fan.Table) ([]fan.Figures, error) {
	s := newSources(l.Kind, t)
	var looking []*player
	var players []turns.Player
	for _, name := range l.Contestants {
		p, err := newPlayer(ctx, name, s, t)
		if err != nil {
			return nil, err
		}
		looking = append(looking, p)
		players = append(players, turns.Player{Name: name, Ready: p.ready, Block: func(n int) { p.run(ctx, n) }, Done: p.done})
	}
	if l.Kind == fan.Computing {
		players = append(players, oneGoroutine, twoGoroutines)
	}
	readings, err := turns.Play(ctx, turns.Config{Rounds: l.Rounds, Time: l.Time, Least: l.Least, Seed: l.Seed}, players)
	if err != nil {
		return nil, err
	}
	var out []fan.Figures
	for i, p := range looking {
		f := fan.Figures{"ns": turns.Each(readings[i], turns.Nanos)}
		if t.Levels > 1 {
			f["goroutines"] = last(p.goroutines, l.Rounds)
		}
		if t.Allocations {
			// As testing.AllocsPerRun: rounds occasional allocations down to none.
			f["allocs"] = turns.Each(readings[i], func(r turns.Reading) float64 { return float64(r.Mallocs / uint64(r.N) * uint64(r.N)) })
			f["bytes"] = turns.Each(readings[i], turns.Bytes)
		}
		if slices.Contains(l.Contestants, fan.AsPrinted) {
			f["lost"] = last(p.lost, l.Rounds)
		}
		if l.Kind == fan.Computing {
			f["free"] = processors(readings[len(looking)], readings[len(looking)+1])
		}
		out = append(out, f)
	}
	return out, nil
}

// last leaves out what was seen before the rounds, while turns looked for their size.
func last(of []float64, rounds int) []float64 { return of[len(of)-rounds:] }

// player is a contestant with its sources.
type player struct {
	name  string
	find  lookup
	whole int // users of a complete lookup

	before        int // goroutines before a block
	calls, missed int // in a block
	err           error

	goroutines, lost []float64 // of every block
}

// newPlayer looks up often enough for an adaptive contestant to adapt, unless that takes
// too long.
func newPlayer(ctx context.Context, name string, s sources, t fan.Table) (*player, error) {
	const calls, least, long = 256, 2, 20 * time.Millisecond
	find, err := newLookup(name, s, t)
	p := &player{name: name, find: find, whole: whole(t), err: err}
	for n, began := 0, time.Now(); p.err == nil && (n < least || n < calls && time.Since(began) < long); n++ {
		p.run(ctx, 1)
	}
	return p, p.check()
}

func (p *player) ready(int) error {
	p.calls, p.missed = 0, 0
	p.before = runtime.NumGoroutine()
	most.Store(int64(p.before))
	return nil
}

func (p *player) run(ctx context.Context, n int) {
	q := query{Email: "ada@example.org", Org: "org-1"}
	for range n {
		found, err := p.find(ctx, q)
		if err != nil {
			p.err = err
		}
		p.missed += p.whole - len(found.list)
	}
	p.calls += n
}

func (p *player) done() error {
	p.goroutines = append(p.goroutines, float64(most.Load()-int64(p.before)))
	p.lost = append(p.lost, float64(p.missed)/float64(p.calls)/float64(max(p.whole-2, 1)))
	return p.check()
}

func (p *player) check() error {
	if p.missed > 0 && p.name != fan.AsPrinted {
		return errors.Join(p.err, fmt.Errorf("%s lost %d users in %d lookups", p.name, p.missed, p.calls))
	}
	return p.err
}

// most is the largest number of goroutines that a source of a nested lookup saw.
var most atomic.Int64

func see(goroutines int) {
	n := int64(goroutines)
	for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
	}
}

// These find out how many processors two computing goroutines get.
var (
	oneGoroutine  = turns.Player{Name: "one goroutine", Block: burn.Turns}
	twoGoroutines = turns.Player{Name: "two goroutines", Block: func(n int) {
		var other sync.WaitGroup
		other.Go(func() { burn.Turns(n) })
		burn.Turns(n)
		other.Wait()
	}}
)

// processors is 2 in a round in which a second processor was free, and 1 if none was.
func processors(one, two []turns.Reading) []float64 {
	alone := slices.Min(turns.Each(one, turns.Nanos))
	out := turns.Each(two, turns.Nanos)
	for i, both := range out {
		out[i] = min(2, 2*alone/both)
	}
	return out
}
