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

// cycling is a pool in steady cycles.
type cycling struct {
	Contestant       string
	Size, Goroutines int
}

func (c cycling) player() (turns.Player, error) {
	var work func() // every turn has a pool of its own: where it lies in memory is luck
	return turns.Player{
		Name: c.Contestant,
		Ready: func(n int) error {
			p := newPool(c.Contestant, c.Size)
			work = ready(c.Goroutines, n, func(times int) { p.cycles(times, min(dirty, c.Size), nil) })
			return nil
		},
		Block: func(int) { work() },
	}, nil
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
// ends, and once at least. In every gap two collections empty the pools that only collections empty. The
// figures are those of all bursts but the first.
func Bursts(_ context.Context, j Burst) (map[string]float64, error) {
	p := newPool(j.Contestant, normal)
	var gets atomic.Uint64
	var inUse, most atomic.Int64
	var getsBefore, madeBefore uint64
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
				for more := true; more; more = time.Now().Before(end) { // once at least, however late a user begins
					gets.Add(1)
					p.cycles(1, dirty, hold)
				}
			})
		}
		all.Wait()
		if p.stats != nil {
			mostHeld = max(mostHeld, p.stats().Held)
		}
		if burst == 0 {
			getsBefore, madeBefore = gets.Load(), p.objects()
		}
		runtime.GC()
		runtime.GC()
		time.Sleep(j.Off)
	}
	got, made := float64(gets.Load()-getsBefore), float64(p.objects()-madeBefore)
	out := map[string]float64{"hits": 100 * (1 - made/got), "peak": float64(most.Load())}
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
	hold := func() {
		ready(j.Users, j.Users*times, func(n int) { p.cycles(n, dirty, func() { time.Sleep(holdFor / 5) }) })()
	}
	hold()
	if j.With {
		p.cycles(1, huge, nil)
	}
	hold()
	answer.Store(nil)
	debug.FreeOSMemory()
	debug.FreeOSMemory()
	hold()
	out := map[string]float64{}
	if rss, _ := usage.Resident(os.Getpid()); rss > 0 {
		out["rss"] = float64(rss)
	}
	return out, nil
}
