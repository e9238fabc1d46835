package limiter

import (
	"context"
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
	"github.com/spillway-go/spillway/limit"
)

// leaving is a user-defined law. The next calls of the method breaks end their goroutine or panic, as many of
// them as times. Its limit is one and two in turns.
type leaving struct {
	fragile
	panics bool
}

func (f *leaving) in(method string) {
	if f.breaks != method || f.times <= 0 {
		return
	}
	if f.times--; f.panics {
		panic("bug in " + method)
	}
	runtime.Goexit()
}

func (f *leaving) Limit() int                       { f.in("Limit"); return f.n }
func (f *leaving) Admit(time.Duration, limit.Load)  { f.in("Admit") }
func (f *leaving) Observe(limit.Sample, limit.Load) { f.n = 3 - f.n; f.in("Observe") }
func (f *leaving) Name() string                     { f.in("Name"); return "leaving" }
func (f *leaving) State() string                    { f.in("State"); return "as ever" }
func (f *leaving) Why() string                      { f.in("Why"); return "work ended" }

func (f *leaving) breakIn(l *Limiter, method string, times int) {
	l.mu.Lock()
	f.breaks, f.times = method, times
	l.mu.Unlock()
}

// apart runs f in a goroutine of its own, and reports whether f has returned.
func apart(f func()) (returned bool) {
	var both sync.WaitGroup
	both.Go(func() {
		defer func() { _ = recover() }()
		f()
		returned = true
	})
	both.Wait()
	return returned
}

// Regression: a law called runtime.Goexit under the lock, and the limiter was locked for ever.
func TestALawThatEndsItsGoroutineLocksNothingAndCostsNoSlot(t *testing.T) {
	nothing := func(context.Context) error { return nil }
	for _, method := range (*fragile)(nil).methods() {
		for _, panics := range []bool{false, true} {
			for what, use := range map[string]func(ctx context.Context, l *Limiter){
				"Acquire": func(ctx context.Context, l *Limiter) { _ = l.Do(ctx, nothing) },
				"dry run": func(ctx context.Context, l *Limiter) {
					p, _ := l.AcquireWith(ctx, Request{DryRun: true})
					p.Done(nil)
				},
				"Release": func(ctx context.Context, l *Limiter) {
					p, _ := l.Acquire(ctx)
					defer p.Release()
				},
				"Long": func(ctx context.Context, l *Limiter) {
					p, _ := l.Acquire(ctx)
					defer p.Release()
					p.Long()
				},
				"Shrink": func(ctx context.Context, l *Limiter) {
					p, _ := l.AcquireWith(ctx, Request{Cost: 2})
					defer p.Release()
					p.Shrink(1)
				},
				"Stats":     func(_ context.Context, l *Limiter) { l.Stats() },
				"SetBounds": func(_ context.Context, l *Limiter) { _ = l.SetBounds(0, 1); _ = l.SetBounds(0, 0) },
				"SetMode":   func(_ context.Context, l *Limiter) { l.SetMode(DryRun); l.SetMode(Enforce) },
			} {
				law := &leaving{fragile: fragile{n: 2}, panics: panics}
				var began, ended atomic.Int64
				l := configured(t, Config{Law: law, Observer: &Observer{
					Admitted: func(_ spillway.Priority, _ time.Duration) { began.Add(1) }, Ended: func(End) { ended.Add(1) },
				}})
				for times := range 4 {
					law.breakIn(l, method, times)
					for range 3 {
						apart(func() { use(t.Context(), l) })
						if !l.mu.TryLock() {
							t.Fatalf("%s, %s: the limiter is locked", method, what)
						}
						l.mu.Unlock()
					}
				}
				law.breakIn(l, "", 0)
				for range 3 {
					apart(func() { l.Stats() }) // raises what is left
					apart(func() { _ = l.Do(t.Context(), nothing) })
				}
				s := l.Stats()
				if s.Law != "leaving" || !strings.HasSuffix(s.State, "as ever") || s.Limit != law.n {
					t.Errorf("%s, %s: %q, %q, limit %d where the law says %d", method, what, s.Law, s.State, s.Limit, law.n)
				}
				if n := ended.Load(); n != int64(s.Completed) {
					t.Errorf("%s, %s: %d ends were told of %d", method, what, n, s.Completed)
				}
				atRest(t, l)
			}
		}
	}
}

func TestStateCountsTheGoroutinesThatALawHasEnded(t *testing.T) {
	law := &leaving{fragile: fragile{n: 2}}
	l := configured(t, Config{Law: law})
	law.breakIn(l, "Admit", 2)
	ran := 0
	for range 3 {
		apart(func() { _ = l.Do(t.Context(), func(context.Context) error { ran++; return nil }) })
	}
	if s := l.Stats(); ran != 1 || s.Admitted != 3 || s.State != "it has called runtime.Goexit 2 times; as ever" {
		t.Errorf("%d ran, %+v", ran, s)
	}
	atRest(t, l)
}

// Whoever should have been granted a slot is, and who leaves its place in the queue by a panic or the end of its
// goroutine leaves nothing behind.
func TestNoWaiterSleepsOnWhenALawEndsGoroutinesOrPanics(t *testing.T) {
	for _, method := range (*fragile)(nil).methods() {
		for i, times := range []int{1, 3, 1000, 1, 3} {
			synctest.Test(t, func(t *testing.T) {
				law := &leaving{fragile: fragile{n: 1}, panics: i > 2}
				l := configured(t, Config{Law: law})
				p := acquire(t, l)
				var callers sync.WaitGroup
				var served, told atomic.Int64
				use := func(f func()) {
					if !apart(f) {
						told.Add(1)
					}
				}
				for i := range 20 {
					ctx, cancel := t.Context(), func() {}
					if i%4 == 0 {
						ctx, cancel = context.WithTimeout(ctx, 20*time.Millisecond)
					}
					defer cancel()
					callers.Go(func() {
						use(func() {
							_ = l.Do(ctx, func(context.Context) error {
								served.Add(1)
								time.Sleep(3 * time.Millisecond)
								return nil
							})
						})
					})
				}
				synctest.Wait()
				law.breakIn(l, method, times)
				use(func() { p.Done(nil) })
				callers.Wait() // a caller that slept on would be a deadlock
				law.breakIn(l, "", 0)
				if n := int(told.Load()); n > times || n == 0 && !slices.Contains([]string{"Name", "State", "Why"}, method) {
					t.Errorf("%s breaks %d times, and %d callers were told", method, times, n)
				}
				if times == 1 && served.Load() < 12 {
					t.Errorf("%s: %d of 20 served", method, served.Load())
				}
				if err := l.Drain(t.Context()); err != nil {
					t.Error(err)
				}
				atRest(t, l)
			})
		}
	}
}

// sometimes is a law that ends one in eight goroutines that call it.
type sometimes struct {
	fragile
	r *rand.Rand
}

func (s *sometimes) in() {
	switch s.r.IntN(16) {
	case 0, 1:
		runtime.Goexit()
	case 2:
		panic("bug")
	}
}

func (s *sometimes) Limit() int                       { s.in(); return 1 + s.n }
func (s *sometimes) Admit(time.Duration, limit.Load)  { s.in() }
func (s *sometimes) Observe(limit.Sample, limit.Load) { s.n = (s.n + 1) % 5; s.in() }
func (s *sometimes) Why() string                      { s.in(); return "why not" }
func (s *sometimes) State() string                    { s.in(); return "as ever" }

func TestUnderLoadALawThatEndsGoroutinesLosesNothing(t *testing.T) {
	law := &sometimes{r: rand.New(rand.NewPCG(3, 4))}
	var l *Limiter
	for l == nil {
		apart(func() {
			made, err := New(Config{Law: law, LeakAfter: time.Hour, Observer: &Observer{LimitChanged: func(limit.Decision) {}}})
			if err == nil {
				l = made
			}
		})
	}
	var callers sync.WaitGroup
	for c := range 8 {
		callers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), 5))
			for range 200 {
				apart(func() {
					switch r.IntN(20) {
					case 0:
						l.Stats()
					case 1:
						l.SetMode(Mode(r.IntN(2)))
					case 2:
						_ = l.SetBounds(0, r.IntN(4))
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(2000))*time.Microsecond)
					defer cancel()
					req := Request{Cost: 1 + r.IntN(2), Long: r.IntN(8) == 0, noWait: r.IntN(4) == 0}
					p, err := l.AcquireWith(ctx, req)
					defer p.Release()
					if err == nil {
						runtime.Gosched()
						p.Done(ctx.Err())
					}
				})
			}
		})
	}
	callers.Wait()
	for !apart(func() { l.SetMode(Enforce) }) {
	}
	if err := context.Cause(t.Context()); err != nil {
		t.Fatal(err)
	}
	for drained := false; !drained; {
		apart(func() { drained = l.Drain(t.Context()) == nil })
	}
	for !apart(func() {
		if s := l.Stats(); s.InFlight != 0 || s.Queued != 0 || s.Offered != s.Admitted+s.Rejected+s.Cancelled || s.Admitted != s.Completed {
			t.Errorf("%+v", s)
		}
	}) {
	}
}

// A family goes on when the law of a limiter that it looks at ends the goroutine.
func TestAFamilyIsNotLockedByALaw(t *testing.T) {
	law := &leaving{fragile: fragile{n: 2}}
	k, err := NewKeyed(KeyedConfig{MaxKeys: 1, New: func(key string) (cfg Config) {
		if key == "a" {
			cfg.Law = law
		}
		return cfg
	}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := k.Acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	l, _ := k.Get("a")
	law.breakIn(l, "Observe", 1)
	l.mu.Lock()
	p.Done(nil) // is handed over
	l.mu.Unlock()
	apart(func() { _, _ = k.Get("b") }) // looks whether a is idle, and tells the law
	if apart(func() { _, _ = k.Get("b") }); l.Stats().Completed != 1 {
		t.Errorf("%+v", l.Stats())
	}
}

// An error of a context is the user's code, too. Regression: it was asked under the lock whether it is a deadline.
func TestAnErrorThatPanicsLocksNothing(t *testing.T) {
	l := fixed(t, 1, 1)
	l.Front()
	if apart(func() { _, _ = l.Acquire(rude{t.Context()}) }) {
		t.Error("swallowed")
	}
	if !l.mu.TryLock() {
		t.Fatal("the limiter is locked")
	}
	l.mu.Unlock()
	atRest(t, l)
}

type rude struct{ context.Context }

func (rude) Err() error { return bad{} }

type bad struct{}

func (bad) Error() string { return "bad" }
func (bad) Is(error) bool { panic("bug in Is") }
