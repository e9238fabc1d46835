package workerpool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/handoff"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

func TestNewNamesTheFieldThatIsWrong(t *testing.T) {
	taken := limit.NewAdaptive()
	l, err := limiter.New(limiter.Config{Law: taken})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for want, cfg := range map[string]Config{
		"MaxWorkers":                    {MaxWorkers: -1},
		"MinWorkers":                    {MinWorkers: 2, MaxWorkers: 1},
		"IdleTimeout":                   {IdleTimeout: -1},
		"GrowAt":                        {GrowAt: 1.5},
		"GrowAt is":                     {GrowAt: 0.5, QueueSize: -1},
		"Law":                           {GrowAt: 0.5, Law: limit.NewFixed(1)},
		"GrowCooldown":                  {GrowCooldown: time.Second},
		"MaxWorkers IdleTimeout GrowAt": {MaxWorkers: -1, IdleTimeout: -time.Second, GrowAt: 2},
		"MinWorkers is":                 {MinWorkers: -1},
		"is a nil *workerpool.spy":      {Law: (*spy)(nil)}, // was once a nil dereference
		"belongs to another":            {Law: taken},
	} {
		_, err := New(cfg)
		for word := range strings.FieldsSeq(want) {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("%+v: %v does not name %s", cfg, err, word)
			}
		}
	}
}

// A worker, its stack and the rings come and go with the load.
func TestAnIdlePoolHasNoGoroutineAndIsSmall(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector's own memory is in the way")
	}
	synctest.Test(t, func(t *testing.T) {
		heap := func() int {
			var m runtime.MemStats
			for range 3 { // sync.Pool keeps its objects through one collection
				runtime.GC()
			}
			runtime.ReadMemStats(&m)
			return int(m.HeapAlloc) // no goroutine, no stack
		}
		p, err := New(Config{MaxWorkers: 1000, QueueSize: 100_000, IdleTimeout: time.Second})
		noError(t, err)
		for range 20_000 {
			noError(t, p.Submit(t.Context(), sleep(time.Millisecond)))
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		// The pool is never closed: a bubble does not end while one of its goroutines is left.
		if s := p.Stats(); s.Workers != 0 || s.Completed != 20_000 {
			t.Errorf("%+v", s)
		}
		with := heap()
		runtime.KeepAlive(p)
		p = nil
		n := with - heap()
		t.Logf("an idle pool takes %d bytes", n)
		if n > 64<<10 {
			t.Errorf("an idle pool takes %d bytes", n)
		}
	})
}

// On a busy machine the looks come late. An idle worker still leaves by the clock.
func TestAnIdleWorkerLeavesInTimeHoweverRarelyThePoolLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(t, Config{MaxWorkers: 2, QueueSize: 4, IdleTimeout: time.Second})
		for range 2 {
			_ = p.Submit(t.Context(), sleep(time.Millisecond))
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		for _, c := range []struct {
			after time.Duration
			want  int
		}{{100 * time.Millisecond, 2}, {900 * time.Millisecond, 2}, {100 * time.Millisecond, 0}} {
			p.timer.Stop()
			time.Sleep(c.after)
			p.upkeep()
			synctest.Wait()
			if s := p.Stats(); s.Workers != c.want {
				t.Errorf("%d workers, want %d", s.Workers, c.want)
			}
		}
	})
}

// A call whose caller had left once kept its place until the queue was searched.
func TestWhoLeftKeepsNoPlace(t *testing.T) {
	for _, by := range []string{"Do", "Submit"} {
		synctest.Test(t, func(t *testing.T) {
			p := pool(t, Config{MaxWorkers: 1, QueueSize: 4})
			hold := make(chan struct{})
			defer close(hold)
			_ = p.Submit(t.Context(), func(context.Context) error { <-hold; return nil })
			ctx, cancel := context.WithCancel(t.Context())
			for range 4 {
				if by == "Do" {
					go func() { _, _ = Do(ctx, p, func(context.Context) (int, error) { return 1, nil }) }()
				} else {
					_ = p.Submit(ctx, nothing)
				}
			}
			synctest.Wait()
			for range 3 {
				if err := p.TrySubmit(t.Context(), nothing); reason(err) != spillway.ReasonQueueFull {
					t.Fatalf("%s: the queue is not full: %v", by, err)
				}
			}
			var blocked error = errors.ErrUnsupported
			go func() { blocked = p.Submit(t.Context(), nothing) }()
			synctest.Wait()
			cancel()
			if by == "Submit" { // the queue is searched now and then
				time.Sleep(time.Second)
			}
			synctest.Wait()
			if blocked != nil {
				t.Errorf("%s: who waited for room still does: %v", by, blocked)
			}
			for i := range 3 {
				if err := p.TrySubmit(t.Context(), nothing); err != nil {
					t.Errorf("%s: refused with %d places free: %v", by, 3-i, err)
				}
			}
			if err := p.TrySubmit(t.Context(), nothing); reason(err) != spillway.ReasonQueueFull {
				t.Errorf("%s: %v", by, err)
			}
			if s := p.Stats(); s.Cancelled != 4 || s.Queued != 4 || s.InFlight != 1 {
				t.Errorf("%s: %+v", by, s)
			}
		})
	}
}

func TestPrioritiesAreServedInOrderWithAFloor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(t, Config{MaxWorkers: 1, QueueSize: 1000})
		var order []spillway.Priority
		submit := func(pr spillway.Priority) {
			if err := p.Submit(spillway.WithPriority(t.Context(), pr), func(context.Context) error {
				order = append(order, pr)
				time.Sleep(time.Millisecond)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		_ = p.Submit(t.Context(), sleep(time.Millisecond))
		synctest.Wait() // the worker is busy before anything is queued
		for range 2 {
			submit(spillway.Low)
		}
		for range 500 {
			submit(spillway.Normal)
		}
		submit(spillway.High)
		submit(spillway.Critical)
		noError(t, p.Drain(t.Context()))
		low := 0
		for i, pr := range order {
			if pr == spillway.Low && i < 500 {
				low++
			}
		}
		if order[0] != spillway.Critical || order[1] != spillway.High || low != 1 {
			t.Fatalf("first %v, %d of low priority before their turn, want 1 of %d", order[:3], low, handoff.Floor)
		}
	})
}

func TestResizeStartsMoreWorkersAndLetsTooManyGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(t, Config{MaxWorkers: 2, QueueSize: 100, IdleTimeout: time.Second})
		for range 60 {
			_ = p.Submit(t.Context(), sleep(time.Second))
		}
		running := func() int { synctest.Wait(); return p.Stats().InFlight }
		if n := running(); n != 2 {
			t.Fatalf("%d run", n)
		}
		noError(t, p.Resize(0, 10))
		if n := running(); n != 10 {
			t.Fatalf("%d run, want 10 at once", n)
		}
		_ = p.Resize(0, 3)
		if n := running(); n != 10 {
			t.Fatalf("%d run: nothing that runs is stopped", n)
		}
		time.Sleep(1500 * time.Millisecond)
		if n := running(); n != 3 {
			t.Fatalf("%d run, want 3", n)
		}
		time.Sleep(1500 * time.Millisecond)
		if s := p.Stats(); s.Workers != 3 {
			t.Fatalf("%d workers, want 3", s.Workers)
		}
		for _, bad := range [][2]int{{-1, 2}, {3, 2}, {0, 0}, {0, -1}} {
			if err := p.Resize(bad[0], bad[1]); err == nil {
				t.Errorf("Resize(%d, %d) accepted", bad[0], bad[1])
			}
		}
		_ = p.Drain(t.Context())
	})
}

func TestTheGrowthRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(t, Config{MinWorkers: 8, MaxWorkers: 14, QueueSize: 10, GrowAt: 0.7, GrowCooldown: 500 * time.Millisecond, IdleTimeout: time.Second})
		for range 8 + 6 { // 60 % full
			_ = p.Submit(t.Context(), sleep(10*time.Second))
		}
		time.Sleep(time.Second)
		if s := p.Stats(); s.Limit != 8 || s.InFlight != 8 {
			t.Errorf("grew too early: %+v", s)
		}
		for range 4 {
			_ = p.Submit(t.Context(), sleep(10*time.Second))
		}
		for i, want := range []int{10, 12, 12} { // up by a quarter, up by another; then the queue is short
			time.Sleep(400 * time.Millisecond)
			synctest.Wait()
			if s := p.Stats(); s.Limit != want {
				t.Errorf("look %d: limit %d, want %d", i, s.Limit, want)
			}
		}
		_ = p.Drain(t.Context())
	})
}

// uneven returns a time with the mean d. Events at the same instant of virtual time run in
// arbitrary order, so no two events should coincide.
func uneven(d time.Duration, r *rand.Rand) time.Duration {
	return d - d/8 + time.Duration(r.Int64N(int64(d)/4))
}

// At ten times the capacity of the workers, an admitted job is served soon.
func TestAStandingQueueIsKeptShort(t *testing.T) {
	for _, cfg := range []Config{{MaxWorkers: 50}, {MinWorkers: 30, MaxWorkers: 50, QueueSize: 100_000, GrowAt: 0.7}} {
		t.Run(fmt.Sprint(cfg.GrowAt), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const work = 20 * time.Millisecond
				p := pool(t, cfg)
				r := rand.New(rand.NewPCG(1, 1))
				var sum, n atomic.Int64
				for range 100_000 { // four seconds of 25,000/s: 50 workers do 2,500/s
					start := time.Now()
					_ = p.TrySubmit(t.Context(), func(context.Context) error {
						time.Sleep(work)
						if p.Limit() == cfg.MaxWorkers { // before that, the pool still grows
							sum.Add(int64(time.Since(start)))
							n.Add(1)
						}
						return nil
					})
					time.Sleep(uneven(40*time.Microsecond, r))
				}
				noError(t, p.Drain(t.Context()))
				s := p.Stats()
				if mean := time.Duration(sum.Load() / n.Load()); mean > 2*work || n.Load() < 2500*4*6/10 || cfg.GrowAt == 0 && n.Load() < 2500*4*9/10 {
					t.Errorf("%d admitted, mean latency %v, want at most %v: %+v", n.Load(), mean, 2*work, s)
				}
				if s.RejectedBy[spillway.ReasonWaitTooLong] == 0 {
					t.Errorf("%+v", s.RejectedBy)
				}
				atRest(t, p)
			})
		})
	}
}

func TestAJobThatWouldWaitPastItsDeadlineIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(t, Config{MaxWorkers: 1, QueueSize: 100})
		for range 20 {
			_ = p.Submit(t.Context(), sleep(100*time.Millisecond))
		}
		time.Sleep(1050 * time.Millisecond) // 9 jobs wait, and the running job is half done
		for deadline, want := range map[time.Duration]spillway.Reason{500 * time.Millisecond: spillway.ReasonDeadlineTooClose, 2 * time.Second: 0} {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			start := time.Now()
			if err := p.Submit(ctx, nothing); reason(err) != want || time.Since(start) != 0 {
				t.Errorf("%v to go: %v after %v", deadline, err, time.Since(start))
			}
			defer cancel()
		}
		drained(t, p)
	})
}

// The run time of a job is unknown before the first job has ended. By then a burst has filled the
// queue, whatever its size, and accepted jobs cannot be refused.
func TestAFreshPoolAcceptsNoLongQueueBlindly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			cfg  Config
			want int // of 20,000
		}{
			{Config{}, firstQueue},
			{Config{MaxWorkers: 50, Law: limit.NewAdaptive()}, firstQueue},
			{Config{QueueSize: 5000}, 5000},
			{Config{GrowAt: 0.7}, defaultQueue},
		} {
			p := pool(t, c.cfg)
			for range 20_000 {
				if err := p.TrySubmit(t.Context(), sleep(time.Hour)); err == nil {
					continue
				} else if !errors.Is(err, spillway.ErrRejected) {
					t.Fatal(err)
				}
			}
			s := p.Stats()
			if got := s.Queued + s.InFlight; got < c.want || got > c.want+s.Limit {
				t.Errorf("%+v: accepted %d, want %d and one for each worker", c.cfg, got, c.want)
			}
			if s.Limit+c.want < 20_000 && s.Rejected == 0 {
				t.Errorf("%+v: nothing was refused", c.cfg)
			}
			p.Close()
			time.Sleep(2 * time.Hour)
		}
	})
}

// A job computes for a moment, on two processors that the test simulates, and then waits. Jobs
// arrive at four times the capacity. Once the pool has measured the work, accepted jobs take about
// 1.6 times as long as a job alone, and little throughput is lost.
func TestABurstIsServedAtTheSpeedOfTheWork(t *testing.T) {
	const (
		computes = 200 * time.Microsecond
		waits    = 20 * time.Millisecond
		gap      = computes / 2 / 4
		knows    = 1500 * time.Millisecond
		length   = 3 * time.Second
	)
	synctest.Test(t, func(t *testing.T) {
		p := pool(t, Config{})
		var done, elapsed atomic.Int64
		processors := make(chan struct{}, 2)
		r := rand.New(rand.NewPCG(1, 1))
		for begin := time.Now(); time.Since(begin) < length; time.Sleep(uneven(gap, r)) {
			at, slice := time.Now(), uneven(computes, r)
			err := p.TrySubmit(t.Context(), func(context.Context) error {
				processors <- struct{}{}
				time.Sleep(slice)
				<-processors
				time.Sleep(waits)
				if at.Sub(begin) > knows {
					done.Add(1)
					elapsed.Add(int64(time.Since(at)))
				}
				return nil
			})
			if err != nil && !errors.Is(err, spillway.ErrRejected) {
				t.Fatal(err)
			}
		}
		noError(t, p.Drain(t.Context()))
		n := done.Load()
		// The mean is 32 ms; once it was seconds.
		if mean := time.Duration(elapsed.Load() / n); mean > 3*(computes+waits) {
			t.Errorf("%d jobs took %v from their submission at the mean, want at most three times what one takes", n, mean)
		}
		if best := int64((length - knows) / computes * 2); n < best*3/4 {
			t.Errorf("%d jobs were done, %d could have been", n, best)
		}
		t.Logf("%d jobs, %v at the mean", n, time.Duration(elapsed.Load()/n))
	})
}

// spy is a fixed law that records the outcomes it observes.
type spy struct {
	limit.Law
	mu   sync.Mutex
	told []limit.Outcome
}

func (s *spy) Observe(x limit.Sample, _ limit.Load) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, x.Outcome)
}

// When jobs became slower, the queue was once sized for the earlier run times. Jobs at its end
// started with a few milliseconds left. The law took their missed deadlines for overload and cut 25
// workers to 4 within 50 ms.
func TestADeadlineThatRanOutInTheQueueSaysNothingOfTheWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		law := &spy{Law: limit.NewFixed(1)}
		p := pool(t, Config{Law: law})
		lasts := func(d time.Duration) Job {
			return func(ctx context.Context) error {
				select {
				case <-time.After(d):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}
		submit := func(deadline, d time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			t.Cleanup(cancel)
			if err := p.TrySubmit(ctx, lasts(d)); err != nil {
				t.Error(err)
			}
		}
		submit(time.Second, 180*time.Millisecond)          // shows how long jobs take
		submit(200*time.Millisecond, 180*time.Millisecond) // has 20 ms left when it starts
		time.Sleep(250 * time.Millisecond)                 // nobody waits
		submit(50*time.Millisecond, 180*time.Millisecond)  // was late before it was submitted
		time.Sleep(100 * time.Millisecond)                 //
		submit(400*time.Millisecond, 3*time.Second)        // takes longer than others
		time.Sleep(time.Second)
		law.mu.Lock()
		defer law.mu.Unlock()
		want := []limit.Outcome{limit.Success, limit.Unknown, limit.Unknown, limit.Deadline}
		if !slices.Equal(law.told, want) {
			t.Errorf("the law was told %v, want %v", law.told, want)
		}
	})
}

// More workers were parked than may run. When one of them retired, the limit once rose to the
// number of the others.
func TestAWorkerThatRetiresNeverRaisesTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(t, Config{MinWorkers: 8, MaxWorkers: 8, QueueSize: 16, GrowAt: 1})
		for i := range 8 { // so that they do not retire at the same time
			noError(t, p.Submit(t.Context(), sleep(time.Duration(i)*time.Second)))
		}
		time.Sleep(8 * time.Second)
		for _, most := range []int{1, 8} {
			noError(t, p.Resize(0, most))
		}
		noError(t, p.Submit(t.Context(), sleep(100*time.Millisecond)))
		for range 30 {
			time.Sleep(time.Second)
			if n := p.Limit(); n != 1 {
				t.Fatalf("the limit is %d, with %d workers", n, p.Stats().Workers)
			}
		}
	})
}

// Callers with deadlines once waited for room until their deadlines were near. Their jobs then
// started in vain.
func TestCallersWithDeadlinesDoNotQueueAtTheirEdge(t *testing.T) {
	const (
		work, deadline = 20 * time.Millisecond, 200 * time.Millisecond
		workers        = 10
		gap            = work / workers * 2 / 3 // one and a half times the capacity
		knows, length  = time.Second, 4 * time.Second
	)
	synctest.Test(t, func(t *testing.T) {
		p := pool(t, Config{MaxWorkers: workers})
		var wg sync.WaitGroup
		var good, elapsed atomic.Int64
		r := rand.New(rand.NewPCG(1, 1))
		for begin := time.Now(); time.Since(begin) < length; time.Sleep(uneven(gap, r)) {
			at := time.Now()
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				_, err := Do(ctx, p, func(context.Context) (int, error) { time.Sleep(work); return 0, nil })
				if err == nil && at.Sub(begin) > knows {
					good.Add(1)
					elapsed.Add(int64(time.Since(at)))
				}
			})
		}
		wg.Wait()
		n := good.Load()
		if best := int64((length - knows) / work * workers); n < best*95/100 {
			t.Errorf("%d of %d were answered in time", n, best)
		}
		if mean := time.Duration(elapsed.Load() / n); mean > 3*work {
			t.Errorf("they took %v at the mean, of which %v is work", mean, work)
		}
		drained(t, p)
	})
}

// A pool that keeps all its workers once stopped its looks as soon as it was idle. Its queue stayed
// as short as the last overload had made it. An hour later the pool refused two in three jobs of a
// small burst.
func TestAnOverloadIsForgottenWhenThePoolIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(t, Config{MinWorkers: 8, MaxWorkers: 8})
		job := func(context.Context) error { time.Sleep(20 * time.Millisecond); return nil }
		for range 5000 { // ten times the capacity
			_ = p.TrySubmit(t.Context(), job)
			time.Sleep(200 * time.Microsecond)
		}
		time.Sleep(time.Hour)
		for i := range 8 + 5*8 { // the workers, and the queue
			if err := p.TrySubmit(t.Context(), job); err != nil {
				t.Fatalf("job %d: %v", i, err)
			}
		}
		noError(t, p.Drain(t.Context())) // a bubble does not end while a job sleeps
	})
}
