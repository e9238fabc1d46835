package limiter

import (
	"context"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// fragile is a user-defined law. Its limit changes with each end of work. The next calls of the
// method breaks panic, as many of them as times.
type fragile struct {
	n      int
	breaks string
	times  int
}

func (f *fragile) in(method string) {
	if f.breaks == method && f.times > 0 {
		f.times--
		panic("bug in " + method)
	}
}

func (f *fragile) Limit() int                       { f.in("Limit"); return f.n }
func (f *fragile) Admit(time.Duration, limit.Load)  { f.in("Admit") }
func (f *fragile) Observe(limit.Sample, limit.Load) { f.n = 3 - f.n; f.in("Observe") }
func (f *fragile) Name() string                     { f.in("Name"); return "fragile" }
func (f *fragile) State() string                    { f.in("State"); return "as ever" }
func (f *fragile) Why() string                      { f.in("Why"); return "work ended" }
func (f *fragile) Forget(uint8)                     { f.in("Forget") }
func (f *fragile) methods() []string {
	return []string{"Limit", "Admit", "Observe", "Name", "State", "Why"}
}
func breaking(l *Limiter, f *fragile, method string, n int) {
	l.mu.Lock()
	f.breaks, f.times = method, n
	l.mu.Unlock()
}

// panicking counts the panics that reach the only caller of a limiter, and checks that the
// limiter is not locked after a panic.
type panicking struct {
	t *testing.T
	l *Limiter
	n int
}

func (p *panicking) try(do func()) {
	p.t.Helper()
	defer func() {
		p.t.Helper()
		if v := recover(); v != nil {
			p.n++
			if e, ok := v.(*spillway.PanicError); !ok || !strings.HasPrefix(e.Value.(string), "bug in ") || !strings.Contains(string(e.Stack), "fragile") {
				p.t.Errorf("panic: %v\n%s", v, debug.Stack())
			}
		}
		if !p.l.mu.TryLock() {
			p.t.Fatal("the limiter is locked")
		}
		p.l.mu.Unlock()
	}()
	do()
}

// Regression: a law panicked under the lock, and the limiter was locked for ever.
func TestALawThatPanicsLocksNothingAndCostsNoSlot(t *testing.T) {
	for _, method := range (*fragile)(nil).methods() {
		t.Run(method, func(t *testing.T) {
			law := &fragile{n: 2}
			l := configured(t, Config{Law: law})
			users := &panicking{t: t, l: l}
			breaking(l, law, method, 1)
			for range 6 {
				users.try(func() { _ = l.Do(t.Context(), func(context.Context) error { return nil }) })
				users.try(func() { l.Stats() })
				users.try(func() { _ = l.SetBounds(0, 1); _ = l.SetBounds(0, 0) })
			}
			if users.n != 1 {
				t.Errorf("callers were told of %d panics", users.n)
			}
			s := l.Stats()
			if s.Admitted != 6 || s.Law != "fragile" || s.State != "it has panicked 1 times; as ever" {
				t.Errorf("%+v", s)
			}
			if s.Limit != law.n {
				t.Errorf("the limit is %d, the law says %d", s.Limit, law.n)
			}
			atRest(t, l)
		})
	}
}

// The end of work while the lock is held is settled by the lock holder: a goroutine unrelated
// to the work, which may have no recover.
func TestAPanicOfALawFindsACallerOfWork(t *testing.T) {
	law := &fragile{n: 2}
	l := configured(t, Config{Law: law})
	users := &panicking{t: t, l: l}
	p := acquire(t, l)
	breaking(l, law, "Observe", 1)
	l.lock(l.now())
	p.Done(nil)
	l.unlock()
	l.SetLease(5, time.Now().Add(time.Hour), "a lease")
	l.SetLease(0, time.Time{}, "")
	if users.n != 0 {
		t.Errorf("told %d times", users.n)
	}
	users.try(func() { acquire(t, l) })
	if users.n != 1 {
		t.Errorf("told %d times", users.n)
	}
	atRest(t, l)
}

// anonymous is a signal that panics in Name until named is set.
type anonymous struct{ named bool }

func (a *anonymous) Level() float64 { return 2 }
func (a *anonymous) Name() string {
	if !a.named {
		panic("bug in Name of fragile")
	}
	return "anonymous"
}

func TestASignalThatCannotSayItsNameLocksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &anonymous{}
		l := configured(t, Config{Law: limit.NewFixed(5), Signals: []Signal{s}})
		if apart(func() { _ = l.Do(t.Context(), nothing) }) {
			t.Error("swallowed")
		}
		if !l.mu.TryLock() {
			t.Fatal("the limiter is locked")
		}
		l.mu.Unlock()
		s.named = true
		time.Sleep(time.Second)
		if err := l.Do(t.Context(), func(context.Context) error { return nil }); err != nil || l.pressure().By != "anonymous" {
			t.Errorf("%v, %+v", err, l.pressure())
		}
		atRest(t, l)
	})
}
