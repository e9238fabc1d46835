package fan

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/bubble"
	"github.com/spillway-go/spillway/lab/burn"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/results"
)

// bout runs all contestants with the same lookup, in one process and in turns, so
// that disturbances of the machine affect all of them.
type bout struct {
	Kind            string
	Sources         int // a database and caches
	Database, Cache time.Duration
	Entries         []entry
	Rounds          int           // each runs every entry once, in a new order
	Time            time.Duration // of each measurement
	Seed            uint64
}

// entry is a contestant.
type entry struct {
	Contestant string
	Twin       bool // the second of an A/A pair
}

// round is what one round of a bout measured.
type round struct {
	Free     float64   // how many processors two goroutines got, 1 to 2; 0: not measured
	Readings []reading // by entry
}

// reading is one measurement, per lookup.
type reading struct{ NS, Allocs, Bytes, Lost float64 }

// play runs a bout. Each contestant is kept for all rounds, so that an adaptive one
// has adapted.
func play(ctx context.Context, b bout) ([]round, error) {
	if b.Kind == Virtual {
		return bubble.Run(ctx, b.play)
	}
	return b.play(ctx)
}

func (b bout) play(ctx context.Context) ([]round, error) {
	rng := rand.New(rand.NewPCG(b.Seed, 1))
	players := make([]*player, len(b.Entries))
	for i, e := range b.Entries {
		p, err := b.player(ctx, e)
		if err != nil {
			return nil, err
		}
		players[i] = p
	}
	rounds := make([]round, b.Rounds)
	var ask probe
	for n := range rounds {
		r := round{Readings: make([]reading, len(players))}
		if b.Kind == Computing {
			r.Free = ask.await()
		}
		for _, i := range rng.Perm(len(players)) {
			var err error
			if r.Readings[i], err = players[i].measure(ctx); err != nil {
				return nil, err
			}
		}
		if b.Kind == Computing {
			r.Free = min(r.Free, ask.processors())
		}
		rounds[n] = r
	}
	return rounds, nil
}

// player is a contestant with its sources.
type player struct {
	name  string
	find  lookup
	whole int // users of a complete lookup
	calls int // of each measurement
}

// Enough calls for adaptive contestants to adapt, unless they take too long.
const (
	warmCalls = 256
	warmTime  = 60 * time.Millisecond
	warmLeast = 6
)

// player makes a contestant and warms it.
func (b bout) player(ctx context.Context, e entry) (*player, error) {
	s := newSources(b.Kind, b.Sources, b.Database, b.Cache)
	find, err := newLookup(e.Contestant, s)
	if err != nil {
		return nil, err
	}
	p := &player{name: e.Contestant, find: find, whole: s.whole(), calls: 1}
	quickest := time.Duration(math.MaxInt64)
	began := time.Now()
	for n := 1; n <= warmCalls && (n <= warmLeast || time.Since(began) < warmTime); n++ {
		again := time.Now()
		if _, err := p.run(ctx); err != nil {
			return nil, err
		}
		quickest = min(quickest, time.Since(again))
	}
	p.calls = max(1, int(b.Time/max(quickest, 1)))
	if b.Kind == Virtual {
		p.calls = warmCalls // they cost nothing
	}
	return p, nil
}

// run looks up once for each call and returns how many users were lost.
func (p *player) run(ctx context.Context) (lost int, err error) {
	q := query{Email: "ada@example.org", Org: "org-1"}
	for range p.calls {
		a, err := p.find(ctx, q)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", p.name, err)
		}
		lost += p.whole - len(a.Users)
	}
	return lost, nil
}

func (p *player) measure(ctx context.Context) (reading, error) {
	if err := ctx.Err(); err != nil {
		return reading{}, err
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	lost, err := p.run(ctx)
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	if err == nil && lost > 0 && p.name != AsPrinted {
		err = fmt.Errorf("%s lost %d users in %d lookups", p.name, lost, p.calls)
	}
	n := float64(p.calls)
	return reading{
		NS:     float64(took) / n,
		Allocs: float64((after.Mallocs - before.Mallocs) / uint64(p.calls)), // as testing.AllocsPerRun: rounds occasional allocations down to none
		Bytes:  float64(after.TotalAlloc-before.TotalAlloc) / n,
		Lost:   float64(lost) / n / float64(max(p.whole-2, 1)),
	}, err
}

// free is the number of processors from which a second one counts as free. Waking it
// takes time too.
const free = 1.6

// probe measures how many processors two computing goroutines get: 2 if a second one
// is free, 1 if not.
type probe struct{ alone time.Duration } // the shortest time of one goroutine

func (p *probe) processors() float64 {
	const turns = 2_000_000 // some milliseconds: the system does not schedule more often
	began := time.Now()
	burn.Turns(turns)
	took := time.Since(began)
	if p.alone == 0 || took < p.alone {
		p.alone = took
	}
	began = time.Now()
	var both sync.WaitGroup
	both.Go(func() { burn.Turns(turns) })
	burn.Turns(turns)
	both.Wait()
	return min(2, 2*float64(p.alone)/float64(max(time.Since(began), 1)))
}

// await waits briefly until the machine is not busy with other work.
func (p *probe) await() float64 {
	for range 8 {
		if got := p.processors(); got >= free {
			return got
		}
		time.Sleep(2 * time.Millisecond)
	}
	return p.processors()
}

// run plays a bout in a process of its own and makes a run of each entry.
func (b bout) run(ctx context.Context, seed, memoryCap uint64) ([]results.Run, error) {
	b.Seed = seed
	var env []string
	if b.Kind == OneProc {
		env = []string{"GOMAXPROCS=1"}
	}
	var rounds []round
	exit, err := contestant.Run(ctx, contestant.Spec{Role: roleBout, Input: b, MemoryCap: memoryCap, Env: env}, &rounds)
	if err != nil {
		return nil, err
	}
	if exit.Killed != "" { // which contestant was the cause is unknown
		return nil, fmt.Errorf("the process of all contestants was %s", exit.Killed)
	}
	return b.asRuns(rounds), nil
}

// asRuns keeps every round, because ratios are taken within a round.
func (b bout) asRuns(rounds []round) []results.Run {
	runs := make([]results.Run, len(b.Entries))
	for i := range b.Entries {
		run := results.Run{
			Params: map[string]any{"kind": b.Kind, "sources": b.Sources, "database_us": micros(b.Database), "cache_us": micros(b.Cache)},
			Extra:  map[string]float64{"sources": float64(b.Sources), "cache_us": micros(b.Cache)},
		}
		figures := map[string][]float64{}
		add := func(key string, x float64) { figures[key] = append(figures[key], x) }
		for n, r := range rounds {
			mine := r.Readings[i]
			run.Extra[roundKey(n)] = mine.NS
			if b.Kind == Computing {
				run.Extra[freeKey(n)] = r.Free
				add("free", r.Free)
			}
			add("ns", mine.NS)
			if b.Database == 0 { // otherwise the sources may allocate too
				add("allocs", mine.Allocs)
				add("bytes", mine.Bytes)
			}
			if slices.Contains(b.Entries, entry{AsPrinted, false}) {
				add("lost", mine.Lost)
			}
			if us := slices.Index(b.Entries, entry{Spillway, false}); us >= 0 {
				add("behind", r.Readings[us].NS/mine.NS)
			}
		}
		for key, of := range figures {
			run.Extra[key] = median(of)
		}
		if lost := figures["lost"]; len(lost) > 0 {
			run.Extra["lost"] = mean(lost)
		}
		runs[i] = run
	}
	return runs
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func roundKey(i int) string { return fmt.Sprintf("ns_round_%d", i+1) }
func freeKey(i int) string  { return fmt.Sprintf("free_round_%d", i+1) }

func mean(xs []float64) (sum float64) {
	for _, x := range xs {
		sum += x / float64(len(xs))
	}
	return sum
}

// median is 0 for no values.
func median(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(xs))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
