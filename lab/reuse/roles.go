package reuse

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/usage"
)

type cycleJob struct {
	Size, Goroutines, Rounds int
	Slice                    time.Duration
}

// cycled is one contestant's steady cycle.
type cycled struct {
	Median  float64 // nanoseconds of wall time per cycle
	Behind  float64 // Spillway's time over this one's: the median of what it was within a round
	Ops     uint64
	Seconds float64
	Mallocs uint64
}

// cycle runs every contestant for a slice of each round, in random order.
func cycle(ctx context.Context, j cycleJob) (map[string]cycled, error) {
	out, times := map[string]cycled{}, map[string][]float64{}
	pools, each := map[string]*pool{}, map[string]int{}
	for _, name := range Names() {
		pools[name] = newPool(name, j.Size)
	}
	// All that reuse make the same number of cycles, so that the overhead of a
	// slice is the same too.
	each[Fresh], each[SyncPool] = calibrate(pools[Fresh], j), calibrate(pools[SyncPool], j)
	each[Channel], each[Spillway], each[Buffers] = each[SyncPool], each[SyncPool], each[SyncPool]
	if j.Size > dirty {
		each[Buffers] = calibrate(pools[Buffers], j) // it clears less
	}
	for round := range j.Rounds {
		names := Names()
		rand.Shuffle(len(names), func(a, b int) { names[a], names[b] = names[b], names[a] })
		for _, name := range names {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			spread(&pool{cycles: func(int) {}}, j.Goroutines, each[name])
			runtime.ReadMemStats(&after)
			harness := after.Mallocs - before.Mallocs // to start the goroutines
			before = after
			took := spread(pools[name], j.Goroutines, each[name])
			runtime.ReadMemStats(&after)
			if name == Fresh {
				runtime.GC() // its garbage must not affect the others
			}
			if round == 0 {
				continue // a warm-up: pools are filled
			}
			c := out[name]
			c.Ops += uint64(each[name] * j.Goroutines)
			c.Seconds += took.Seconds()
			c.Mallocs += after.Mallocs - before.Mallocs - min(after.Mallocs-before.Mallocs, harness)
			out[name] = c
			times[name] = append(times[name], float64(took.Nanoseconds())/float64(each[name]*j.Goroutines))
		}
	}
	for name, all := range times {
		ratios := slices.Clone(times[Spillway]) // a round is short, so a slow moment affects all its contestants
		for i := range ratios {
			ratios[i] /= all[i]
		}
		c := out[name]
		c.Median, c.Behind = usage.Median(all), usage.Median(ratios)
		out[name] = c
	}
	return out, nil
}

// calibrate finds how many cycles of each goroutine fill a slice.
func calibrate(p *pool, j cycleJob) int {
	for n := 1; ; n *= 2 {
		if took := min(spread(p, j.Goroutines, n), spread(p, j.Goroutines, n)); took >= j.Slice/2 || n > 1<<24 {
			return max(1, int(float64(n)*float64(j.Slice)/float64(took)))
		}
	}
}

// spread runs n cycles in each of some goroutines, which are there before, and
// returns how long it took.
func spread(p *pool, goroutines, n int) time.Duration {
	if goroutines == 1 {
		began := time.Now()
		p.cycles(n)
		return time.Since(began)
	}
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	ready.Add(goroutines)
	for range goroutines {
		done.Go(func() {
			ready.Done()
			<-begin
			p.cycles(n)
		})
	}
	ready.Wait()
	began := time.Now()
	close(begin)
	done.Wait()
	return time.Since(began)
}

// burstSize is what every user of a burst holds, in bytes.
const (
	burstSize = 64 << 10
	burstLoad = "64 KiB, on and off"
	holdFor   = 5 * time.Millisecond
)

type burstJob struct {
	Name                string
	Size, Users, Bursts int
	On, Off, Idle       time.Duration
}

// bursted is the result of the bursts after the first.
type bursted struct {
	Gets, Made, Mallocs uint64
	Peak, Held          int // most objects in use, and held idle after a burst
	AfterIdle           int
	OffBy               float64 // reported less counted reuse, in objects
	Seconds             float64
}

func (b bursted) hits() float64 { return 1 - float64(b.Made)/float64(max(b.Gets, 1)) }

// bursts starts all users at once, each getting, holding and putting until the burst
// ends. In every gap two collections empty the pools that only collections empty.
func bursts(ctx context.Context, j burstJob) (bursted, error) {
	p := newPool(j.Name, j.Size)
	var out bursted
	var gets, warm atomic.Uint64
	var inUse, peak atomic.Int64
	var madeWarm uint64
	var before, after runtime.MemStats
	began := time.Now()
	for burst := range j.Bursts {
		var wg sync.WaitGroup
		end := time.Now().Add(j.On)
		for range j.Users {
			wg.Go(func() {
				for time.Now().Before(end) {
					gets.Add(1)
					p.use(dirty, func() {
						now := inUse.Add(1)
						for was := peak.Load(); now > was && !peak.CompareAndSwap(was, now); was = peak.Load() {
						}
						time.Sleep(holdFor)
						inUse.Add(-1)
					})
				}
			})
		}
		wg.Wait()
		if p.stats != nil {
			out.Held = max(out.Held, p.stats().Held)
		}
		if burst == 0 {
			warm.Store(gets.Load())
			madeWarm = p.objects()
			runtime.ReadMemStats(&before)
			began = time.Now()
		}
		runtime.GC()
		runtime.GC()
		if !pause(ctx, j.Off) {
			return out, ctx.Err()
		}
	}
	runtime.ReadMemStats(&after)
	out.Gets, out.Made = gets.Load()-warm.Load(), p.objects()-madeWarm
	out.Mallocs, out.Peak, out.Seconds = after.Mallocs-before.Mallocs, int(peak.Load()), time.Since(began).Seconds()
	if p.stats != nil {
		s := p.stats()
		out.OffBy = max(float64(s.Gets)-float64(gets.Load()), float64(gets.Load())-float64(s.Gets)) +
			max(float64(s.Gets-s.Reused)-float64(p.objects()), float64(p.objects())-float64(s.Gets-s.Reused))
	}
	if j.Idle > 0 {
		if !pause(ctx, j.Idle) {
			return out, ctx.Err()
		}
		out.AfterIdle = p.stats().Held
	}
	return out, nil
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

const outlierSize = 64 << 20

func outlierLoad(with bool) string {
	if with {
		return "64 MiB once"
	}
	return "none"
}

type outlierJob struct {
	Name  string
	With  bool
	Users int
}

type outlived struct {
	RSS     uint64
	Ops     uint64
	Seconds float64
}

// outlier holds a page of 64 KiB for each user at a time, one of which grows to 64 MiB in the middle, and
// looks at the resident memory at the end.
func outlier(_ context.Context, j outlierJob) (outlived, error) {
	const times = 50
	p := newPool(j.Name, burstSize)
	holding := &pool{cycles: func(n int) {
		for range n {
			p.use(dirty, func() { time.Sleep(holdFor / 5) })
		}
	}}
	began := time.Now()
	spread(holding, j.Users, times)
	if j.With {
		p.use(outlierSize, func() {})
	}
	spread(holding, j.Users, times)
	kept.Store(nil)
	debug.FreeOSMemory()
	debug.FreeOSMemory()
	spread(holding, j.Users, times)
	rss, err := resident()
	return outlived{rss, 3 * uint64(j.Users) * times, time.Since(began).Seconds()}, err
}

// resident is this process's resident memory in bytes, or what the runtime has
// from the system if that is not available.
func resident() (uint64, error) {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.Sys - m.HeapReleased, nil
	}
	var size, pages uint64
	if _, err := fmt.Fscan(strings.NewReader(string(data)), &size, &pages); err != nil {
		return 0, fmt.Errorf("reading /proc/self/statm: %w", err)
	}
	return pages * uint64(os.Getpagesize()), nil
}
