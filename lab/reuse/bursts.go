package reuse

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/bubble"
)

// holdFor is how long every user of a burst has an object.
const holdFor = 5 * time.Millisecond

type burstJob struct {
	Contestant    string
	Users, Bursts int
	On, Off, Idle time.Duration // Idle after the last burst
}

// idle is bursts in virtual time: it makes nobody wait.
func idle(ctx context.Context, j burstJob) (map[string]float64, error) {
	return bubble.Run(ctx, func(ctx context.Context) (map[string]float64, error) { return bursts(ctx, j) })
}

// bursts starts all users at once, each getting, holding and putting until the burst
// ends. In every gap two collections empty the pools that only collections empty. The
// figures are those of all bursts but the first.
func bursts(ctx context.Context, j burstJob) (map[string]float64, error) {
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
		if err := pause(ctx, j.Off); err != nil {
			return nil, err
		}
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
		if err := pause(ctx, j.Idle); err != nil {
			return nil, err
		}
		out["idle"] = float64(p.stats().Held)
	}
	return out, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
