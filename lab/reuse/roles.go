package reuse

import (
	"context"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/turns"
	"github.com/spillway-go/spillway/load/usage"
)

type cycleJob struct {
	Players            []player
	Goroutines, Rounds int
	Time               time.Duration
	Seed               uint64
}

type player struct {
	Contestant string
	Size       int
}

// cycle returns the readings of the players.
func cycle(ctx context.Context, j cycleJob) ([][]turns.Reading, error) {
	players := make([]turns.Player, len(j.Players))
	for i, p := range j.Players {
		var work func() // every turn has a pool of its own: where it lies in memory is luck
		players[i] = turns.Player{
			Name:  p.Contestant,
			Ready: func(n int) error { work = ready(j.Goroutines, n, newPool(p.Contestant, p.Size).cycles); return nil },
			Block: func(int) { work() },
		}
	}
	return turns.Play(ctx, turns.Config{Rounds: j.Rounds, Time: j.Time, Seed: j.Seed}, players)
}

// ready starts goroutines for n cycles in all, which wait for work. Each has made one
// before, so that the pool is filled.
func ready(goroutines, n int, cycles func(n int)) (work func()) {
	begin := make(chan struct{})
	var warm, done sync.WaitGroup
	warm.Add(goroutines)
	for i := range goroutines {
		share := n*(i+1)/goroutines - n*i/goroutines
		done.Go(func() {
			cycles(1)
			warm.Done()
			<-begin
			cycles(share)
		})
	}
	warm.Wait()
	return func() {
		close(begin)
		done.Wait()
	}
}

// holdFor is how long every user of a burst has an object.
const holdFor = 5 * time.Millisecond

// Burst is what the bursts are made of.
type Burst struct {
	Contestant    string
	Users, Bursts int
	On, Off, Idle time.Duration // Idle after the last burst
}

// Bursts starts all users at once, each getting, holding and putting until the burst
// ends. In every gap two collections empty the pools that only collections empty. The
// figures are those of all bursts but the first.
func Bursts(_ context.Context, j Burst) (map[string]float64, error) {
	p := newPool(j.Contestant, normal)
	var gets atomic.Uint64
	var inUse, most atomic.Int64
	var getsBefore, madeBefore uint64
	var before, after runtime.MemStats
	var began time.Time
	mostHeld := 0
	hold := func() {
		now := inUse.Add(1)
		for was := most.Load(); now > was && !most.CompareAndSwap(was, now); was = most.Load() {
		}
		time.Sleep(holdFor)
		inUse.Add(-1)
	}
	for burst := range j.Bursts {
		var all sync.WaitGroup
		end := time.Now().Add(j.On)
		for range j.Users {
			all.Go(func() {
				for time.Now().Before(end) {
					gets.Add(1)
					p.use(dirty, hold)
				}
			})
		}
		all.Wait()
		if p.stats != nil {
			mostHeld = max(mostHeld, p.stats().Held)
		}
		if burst == 0 {
			getsBefore, madeBefore, began = gets.Load(), p.objects(), time.Now()
			runtime.ReadMemStats(&before)
		}
		runtime.GC()
		runtime.GC()
		time.Sleep(j.Off)
	}
	runtime.ReadMemStats(&after)
	got, made := float64(gets.Load()-getsBefore), float64(p.objects()-madeBefore)
	out := map[string]float64{
		"hits": 100 * (1 - made/got), "peak": float64(most.Load()), "rate": got / time.Since(began).Seconds(),
		"mallocs": float64(after.Mallocs-before.Mallocs) / got,
	}
	if p.stats != nil {
		s := p.stats()
		out["held"] = float64(mostHeld)
		out["off_by"] = math.Abs(float64(s.Gets)-float64(gets.Load())) + math.Abs(float64(s.Gets-s.Reused)-float64(p.objects()))
	}
	if j.Idle > 0 {
		time.Sleep(j.Idle)
		out["idle"] = float64(p.stats().Held)
	}
	return out, nil
}

type outlierJob struct {
	Contestant string
	With       bool
	Users      int
}

// outlier holds a page of 64 KiB for each user at a time, one of which grows to 64 MiB in
// the middle, and looks at the resident memory at the end.
func outlier(_ context.Context, j outlierJob) (map[string]float64, error) {
	const times = 50
	p := newPool(j.Contestant, normal)
	holding := func(n int) {
		for range n {
			p.use(dirty, func() { time.Sleep(holdFor / 5) })
		}
	}
	hold := func() { ready(j.Users, j.Users*times, holding)() }
	began := time.Now()
	hold()
	if j.With {
		p.use(huge, func() {})
	}
	hold()
	answer.Store(nil)
	debug.FreeOSMemory()
	debug.FreeOSMemory()
	hold()
	out := map[string]float64{"rate": 3 * float64(j.Users) * times / time.Since(began).Seconds()}
	if rss, _ := usage.Resident(os.Getpid()); rss > 0 {
		out["rss"] = float64(rss)
	}
	return out, nil
}
