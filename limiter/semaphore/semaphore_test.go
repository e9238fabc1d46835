package semaphore

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// twin is a weighted semaphore in slow motion: one number and a list of calls, first come, first
// served.
type twin struct {
	size, used int64
	now        time.Duration
	waiting    []*call
}

type call struct {
	n        int64
	deadline time.Duration // zero: none
	cancel   context.CancelFunc
	want     string
	got      atomic.Value
}

const (
	waits    = "waits"
	acquired = "acquired"
)

func (m *twin) serve() {
	for len(m.waiting) > 0 && m.waiting[0].n <= m.size-m.used {
		m.used += m.waiting[0].n
		m.waiting[0].want = acquired
		m.waiting = m.waiting[1:]
	}
}

func (m *twin) try(n int64) bool {
	free := len(m.waiting) == 0 && n <= m.size-m.used
	if free {
		m.used += n
	}
	return free
}

func (m *twin) acquire(c *call) {
	if c.want = waits; m.try(c.n) {
		c.want = acquired
	} else if c.n <= m.size { // otherwise it only waits for the end of its context
		m.waiting = append(m.waiting, c)
	}
}

func (m *twin) end(c *call, err error) {
	if c.want == waits {
		c.want = err.Error()
		m.waiting = slices.DeleteFunc(m.waiting, func(w *call) bool { return w == c })
		m.serve()
	}
}

// sleep ends the calls whose deadlines pass, one after the other.
func (m *twin) sleep(calls []*call, d time.Duration) {
	m.now += d
	passed := slices.DeleteFunc(slices.Clone(calls), func(c *call) bool { return c.deadline == 0 || c.deadline > m.now })
	slices.SortStableFunc(passed, func(a, b *call) int { return int(a.deadline - b.deadline) })
	for _, c := range passed {
		m.end(c, context.DeadlineExceeded)
	}
}

// hold acquires n slots.
func hold(t *testing.T, s *Weighted, n int64) {
	t.Helper()
	if err := s.Acquire(t.Context(), n); err != nil {
		t.Fatal(err)
	}
}

// over returns a semaphore in front of a limiter of its own.
func over(t *testing.T, cfg limiter.Config) *Weighted {
	t.Helper()
	lim, err := limiter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return New(lim)
}

// FuzzWeighted drives a semaphore and its twin through the same life. The slots of a large size are
// units of 2^33, as if they were bytes.
func FuzzWeighted(f *testing.F) {
	f.Add(uint8(3), []byte{6, 12, 18, 3, 9, 0, 10, 40, 3})
	f.Add(uint8(1), []byte{6, 6, 6, 251, 3, 251, 4, 3, 6, 2, 3})
	f.Add(uint8(7), []byte{6, 42, 12, 1, 13, 250, 5, 3, 9, 15, 21, 27, 33, 39, 250, 2, 8, 4, 10, 16, 22, 3})
	f.Add(uint8(132), []byte{30, 6, 6, 36, 6, 3, 245, 3, 3, 3, 3, 3, 1, 55, 7, 245, 85, 3, 3, 245})
	f.Fuzz(func(t *testing.T, size uint8, ops []byte) {
		if len(ops) > 300 {
			return
		}
		unit := int64(1)
		if size > 127 && math.MaxInt > math.MaxInt32 {
			unit = 1 << 33
		}
		synctest.Test(t, func(t *testing.T) {
			s, m := NewWeighted(int64(size%10)*unit), &twin{size: int64(size%10) * unit}
			var calls []*call
			var offset time.Duration // no two deadlines are the same
			for i, op := range ops {
				arg := int64(op / 6)
				switch op % 6 {
				case 0, 1: // a caller, with a deadline or without
					ctx, cancel := context.WithCancel(t.Context())
					c := &call{n: (arg%(m.size/unit+2) + 1) * unit, cancel: cancel}
					if op%6 == 1 {
						offset += time.Nanosecond
						d := time.Duration(arg)*10*time.Millisecond + 5*time.Millisecond + offset
						c.deadline = m.now + d
						ctx, c.cancel = context.WithTimeout(ctx, d)
					}
					defer cancel()
					calls = append(calls, c)
					m.acquire(c)
					c.got.Store(waits)
					go func() {
						if err := s.Acquire(ctx, c.n); err != nil {
							c.got.Store(err.Error())
						} else {
							c.got.Store(acquired)
						}
					}()
				case 2:
					n := arg % (m.size/unit + 2) * unit
					if want := n == 0 || m.try(n); s.TryAcquire(n) != want {
						t.Fatalf("op %d: TryAcquire(%d) is not %v", i, n, want)
					}
				case 3: // slots come back in any portions
					n := min(arg*unit+arg%3, m.used)
					m.used -= n
					m.serve()
					s.Release(n)
				case 4:
					if len(calls) > 0 {
						c := calls[int(arg)%len(calls)]
						m.end(c, context.Canceled)
						c.cancel()
					}
				case 5:
					d := time.Duration(arg) * 10 * time.Millisecond
					m.sleep(calls, d)
					time.Sleep(d)
				}
				synctest.Wait()
				for k, c := range calls {
					if c.got.Load() != c.want {
						t.Fatalf("op %d: call %d of %d slots: %q, want %q", i, k, c.n, c.got.Load(), c.want)
					}
				}
				if st := s.Limiter().Stats(); int64(st.InFlight) != m.used || st.Queued != len(m.waiting) {
					t.Fatalf("op %d: %d slots in use, %d callers wait, want %d and %d", i, st.InFlight, st.Queued, m.used, len(m.waiting))
				}
			}
			for _, c := range calls {
				m.end(c, context.Canceled)
				c.cancel()
				synctest.Wait() // slots that c leaves go to others before these end, too
			}
			s.Release(m.used)
			st := s.Limiter().Stats()
			delete(st.RejectedBy, spillway.ReasonQueueFull) // of TryAcquire
			if st.InFlight != 0 || st.Queued != 0 || len(st.RejectedBy) > 0 || st.Completed != st.Admitted || s.total != 0 || len(s.held) != 0 {
				t.Errorf("at the end: %+v", st)
			}
		})
	})
}

// Regression: behind an adapter of a limiter with its usual bounds most of these calls were refused.
func TestABatchWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewWeighted(4)
		var all sync.WaitGroup
		for range 600 {
			all.Go(func() {
				if err := s.Acquire(t.Context(), 1); err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Second)
				s.Release(1)
			})
		}
		start := time.Now()
		all.Wait()
		if st := s.Limiter().Stats(); time.Since(start) != 150*time.Second || st.Completed != 600 || time.Duration(st.QueueWait.Max()) < 149*time.Second {
			t.Errorf("after %v: %+v", time.Since(start), st)
		}
	})
}

func TestSlotsComeBackInAnyPortions(t *testing.T) {
	s := NewWeighted(10)
	for _, n := range []int64{3, 4, 2} {
		if !s.TryAcquire(n) {
			t.Fatal(n)
		}
	}
	for _, c := range []struct{ back, left int64 }{{1, 8}, {0, 8}, {5, 3}, {2, 1}, {1, 0}} {
		s.Release(c.back)
		if in := s.Limiter().Stats().InFlight; int64(in) != c.left {
			t.Fatalf("after %d came back, %d are in use, want %d", c.back, in, c.left)
		}
	}
	if st := s.Limiter().Stats(); st.Admitted != 3 || st.Completed != 3 {
		t.Errorf("%+v", st)
	}
}

// Work of two weights takes different times. Each Release ends work of its own weight if there
// is any, so that the durations are right.
func TestReleaseEndsTheOldestWorkOfItsWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ends []limiter.End
		s := over(t, limiter.Config{
			Law: limit.NewFixed(10), Observer: &limiter.Observer{Ended: func(e limiter.End) { ends = append(ends, e) }},
		})
		for _, n := range []int64{1, 1, 4} {
			hold(t, s, n)
			time.Sleep(time.Second)
		}
		s.Release(4)
		s.Release(1)
		s.Release(1)
		for i, want := range []limiter.End{{Took: time.Second}, {Took: 3 * time.Second}, {Took: 2 * time.Second}} {
			if ends[i].Took != want.Took {
				t.Errorf("end %d: %+v, want %+v", i, ends[i], want)
			}
		}
	})
}

func TestWhatIsWrongPanicsAndChangesNothing(t *testing.T) {
	s := NewWeighted(4)
	if !s.TryAcquire(3) {
		t.Fatal("no slots")
	}
	for name, use := range map[string]func(){
		"more than held":           func() { s.Release(4) },
		"a negative release":       func() { s.Release(-1) },
		"a negative acquisition":   func() { _ = s.Acquire(t.Context(), -1) },
		"a negative try":           func() { s.TryAcquire(-1) },
		"a negative size":          func() { NewWeighted(-1) },
		"the largest release":      func() { s.Release(math.MaxInt64) },
		"the most negative number": func() { s.Release(math.MinInt64) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not panic", name)
				}
			}()
			use()
		}()
	}
	s.Release(3)
	if !s.TryAcquire(4) {
		t.Error("the slots are not back")
	}
}

func TestZeroSlotsNeverWait(t *testing.T) {
	s := NewWeighted(0)
	if err := s.Acquire(t.Context(), 0); err != nil || !s.TryAcquire(0) || s.TryAcquire(1) {
		t.Error(err)
	}
	s.Release(0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Acquire(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// More important callers come first, whoever came first.
func TestPrioritiesComeFromTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewWeighted(1)
		hold(t, s, 1)
		var order []spillway.Priority
		var all sync.WaitGroup
		for _, p := range []spillway.Priority{spillway.Low, spillway.Normal, spillway.Critical} {
			all.Go(func() {
				// The cost of the context is of other limiters.
				if err := s.Acquire(spillway.WithCost(spillway.WithPriority(t.Context(), p), 7), 1); err != nil {
					t.Error(err)
				}
				order = append(order, p)
				s.Release(1)
			})
			synctest.Wait()
		}
		s.Release(1)
		all.Wait()
		if !slices.Equal(order, []spillway.Priority{spillway.Critical, spillway.Normal, spillway.Low}) {
			t.Errorf("served in the order %v", order)
		}
	})
}

// A dry run admits all, and what was admitted comes back in any mode.
func TestADryRunRefusesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewWeighted(2)
		for _, mode := range []limiter.Mode{limiter.DryRun, limiter.Off, limiter.Enforce} {
			s.Limiter().SetMode(limiter.DryRun)
			for range 3 {
				hold(t, s, 2)
			}
			if !s.TryAcquire(5) { // more than the size
				t.Fatal("refused in a dry run")
			}
			s.Limiter().SetMode(mode)
			if mode == limiter.Off && !s.TryAcquire(math.MaxInt32) {
				t.Fatal("refused while off")
			}
			s.Release(s.total - 1)
			s.Release(1)
			if st := s.Limiter().Stats(); st.InFlight != 0 || st.WouldReject == 0 {
				t.Errorf("%v: %+v", mode, st)
			}
		}
	})
}

// Regression: an exclusive holder takes the largest weight, and in a dry run it does so beside others.
// The sum overflowed, and Release panicked.
func TestASumOfTheLargestWeightsComesBack(t *testing.T) {
	for _, mode := range []limiter.Mode{limiter.DryRun, limiter.Off} {
		s := NewWeighted(math.MaxInt64)
		s.Limiter().SetMode(mode)
		weights := []int64{1, math.MaxInt64, math.MaxInt64, 5, math.MaxInt64}
		for _, n := range weights {
			hold(t, s, n)
		}
		for _, n := range weights {
			s.Release(n / 2)
			s.Release(n - n/2)
		}
		if st := s.Limiter().Stats(); st.InFlight != 0 || s.total != 0 || s.wraps != 0 || len(s.held) != 0 {
			t.Errorf("%v: %d and %d times 2^63 are held: %+v", mode, s.total, s.wraps, st)
		}
	}
}

// Regression: when the observer panicked at one of several ends, the slots of the others were lost.
func TestAPanicAtOneEndLosesNoSlots(t *testing.T) {
	ends := 0
	s := over(t, limiter.Config{Law: limit.NewFixed(8), Observer: &limiter.Observer{Ended: func(limiter.End) {
		if ends++; ends%2 == 1 {
			panic("observer")
		}
	}}})
	for range 6 {
		hold(t, s, 1)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is lost")
			}
		}()
		s.Release(5)
	}()
	if st := s.Limiter().Stats(); st.InFlight != 1 || s.total != 1 {
		t.Errorf("%d of 1 slots are held: %+v", s.total, st)
	}
}

// Regression: work of more than the first size waited for ever, also within raised bounds.
func TestBoundsRaiseTheSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewWeighted(8)
		if err := s.Limiter().SetBounds(20, 0); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.Acquire(ctx, 15); err != nil || s.TryAcquire(6) || !s.TryAcquire(5) || s.TryAcquire(21) {
			t.Errorf("%v, or not 20 slots", err)
		}
		if err := s.Acquire(ctx, 21); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("21 slots of 20: %v", err)
		}
	})
}

// Also more than the size is refused at once then, and does not wait for the end of its context.
func TestAfterADrainAllIsRefused(t *testing.T) {
	s := NewWeighted(1)
	if err := s.Limiter().Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int64{1, 2} {
		rejection, ok := errors.AsType[*spillway.Rejection](s.Acquire(t.Context(), n))
		if !ok || rejection.Reason != spillway.ReasonDraining || s.TryAcquire(n) {
			t.Errorf("%d slots: %+v", n, rejection)
		}
	}
}

// A limiter of the usual kind refuses what would wait too long.
func TestAGivenLimiterMayRefuse(t *testing.T) {
	s := over(t, limiter.Config{Law: limit.NewFixed(4), QueueSize: -1})
	hold(t, s, 9) // runs alone
	rejection, ok := errors.AsType[*spillway.Rejection](s.Acquire(t.Context(), 1))
	if !ok || rejection.Reason != spillway.ReasonQueueFull {
		t.Errorf("%+v", rejection)
	}
	s.Release(4)
	s.Release(5)
	if st := s.Limiter().Stats(); st.InFlight != 0 || st.Rejected != 1 || st.Completed != 1 {
		t.Errorf("%+v", st)
	}
}

// Many goroutines take and return slots, some of them slots that others took.
func TestSlotsAreNeitherLostNorMade(t *testing.T) {
	const size = 7
	s := NewWeighted(size)
	var used, most atomic.Int64
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for k := range 200 {
				n := int64((i+k)%size) + 1
				if k%3 == 0 {
					if !s.TryAcquire(n) {
						continue
					}
				} else if err := s.Acquire(context.Background(), n); err != nil {
					t.Error(err)
				}
				now := used.Add(n)
				for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
				}
				used.Add(-n)
				half := n / 2
				s.Release(half)
				s.Release(n - half)
			}
		})
	}
	all.Wait()
	if st := s.Limiter().Stats(); st.InFlight != 0 || st.Queued != 0 || st.Completed != st.Admitted || most.Load() > size {
		t.Errorf("at most %d of %d at once: %+v", most.Load(), size, st)
	}
	if !s.TryAcquire(size) || s.TryAcquire(1) {
		t.Error("the slots are not all there, or more than that")
	}
}

func TestAllocsOfAcquireAndRelease(t *testing.T) {
	s := NewWeighted(8)
	ctx := context.Background()
	for name, use := range map[string]func(){
		"one": func() { _ = s.Acquire(ctx, 1); s.Release(1) },
		"all": func() { _ = s.Acquire(ctx, 8); s.Release(8) },
		"parts": func() {
			_ = s.Acquire(ctx, 5)
			s.TryAcquire(3)
			s.Release(2)
			s.Release(6)
		},
		"overlap": func() {
			_ = s.Acquire(ctx, 1)
			_ = s.Acquire(ctx, 2)
			s.Release(1)
			_ = s.Acquire(ctx, 4)
			s.Release(2)
			s.Release(4)
		},
		"in vain": func() { s.TryAcquire(9) },
	} {
		use()
		want := 0.0
		if name == "parts" { // a TryAcquire of several slots
			want = 1
		}
		if n := testing.AllocsPerRun(1000, use); n != want {
			t.Errorf("%s: %v allocations, want %v", name, n, want)
		}
	}
}

// What a burst needed is freed once nothing is held.
func TestAllocsOfABurstAreFreed(t *testing.T) {
	s := NewWeighted(4 * spare)
	for range 4 * spare {
		s.TryAcquire(1)
	}
	s.Release(4 * spare)
	if cap(s.held) > spare {
		t.Errorf("room for %d is kept", cap(s.held))
	}
}

func BenchmarkAcquireRelease(b *testing.B) {
	s, ctx := NewWeighted(8), context.Background()
	b.ReportAllocs()
	for b.Loop() {
		_ = s.Acquire(ctx, 1)
		s.Release(1)
	}
}
