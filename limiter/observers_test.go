package limiter

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

func TestObserversTellAllInOrder(t *testing.T) {
	if Observers() != nil || Observers(nil, nil) != nil {
		t.Error("an observer of nothing")
	}
	told := ""
	named := func(name string) *Observer {
		return &Observer{
			Admitted:     func(spillway.Priority, time.Duration) { told += name + " admitted " },
			Rejected:     func(spillway.Priority, *spillway.Rejection) { told += name + " rejected " },
			WouldReject:  func(spillway.Priority, *spillway.Rejection) { told += name + " would " },
			Ended:        func(End) { told += name + " ended " },
			LimitChanged: func(limit.Decision) { told += name + " limit " },
		}
	}
	b := &Observer{Admitted: named("b").Admitted}
	all := Observers(nil, named("a"), nil, b, named("c"))
	all.Admitted(spillway.Low, 0)
	all.Rejected(spillway.Low, nil)
	all.WouldReject(spillway.Low, nil)
	all.Ended(End{})
	all.LimitChanged(limit.Decision{})
	if told != "a admitted b admitted c admitted a rejected c rejected a would c would a ended c ended a limit c limit " {
		t.Error(told)
	}
	if alone := Observers(b); alone == b || alone.Rejected != nil {
		t.Error("the one that was given, or with functions that it has not")
	}
}

// If an observer panics, the caller gets the panic, all other observers still get every call, and no slot is lost.
func TestAPanicOfOneObserverKeepsNothingFromTheOthers(t *testing.T) {
	bug := func(f func()) {
		defer func() {
			if v := recover(); v != "bug" {
				t.Errorf("recovered %v", v)
			}
		}()
		f()
	}
	heard := ""
	hears := &Observer{
		Admitted:     func(spillway.Priority, time.Duration) { heard += "a" },
		Ended:        func(End) { heard += "e" },
		WouldReject:  func(spillway.Priority, *spillway.Rejection) { heard += "w" },
		LimitChanged: func(limit.Decision) { heard += "l" },
	}
	for _, panics := range []*Observer{{Admitted: func(spillway.Priority, time.Duration) { panic("bug") }}, {Ended: func(End) { panic("bug") }}} {
		heard = ""
		l := configured(t, Config{Law: &rising{n: 1}, Observer: Observers(panics, hears)})
		for range 3 {
			bug(func() { _ = l.Do(t.Context(), nothing) })
		}
		if heard != "aelaelael" || l.Stats().Admitted != 3 {
			t.Errorf("the other heard %q: %+v", heard, l.Stats())
		}
		atRest(t, l)
	}
	synctest.Test(t, func(t *testing.T) {
		heard = ""
		l := configured(t, Config{Law: limit.NewFixed(1), QueueSize: -1, Mode: DryRun, Observer: Observers(&Observer{
			WouldReject: func(spillway.Priority, *spillway.Rejection) { panic("bug") },
		}, hears)})
		p := acquire(t, l)
		for range 2 {
			bug(func() { _, _ = l.TryAcquire(t.Context()) })
		}
		p.Done(nil)
		if n := l.Stats().WouldReject; n != 2 || heard != "awewee" {
			t.Errorf("the other heard %q, and %d would have been refused", heard, n)
		}
		atRest(t, l)
	})
}

func TestAllocsOfObservers(t *testing.T) {
	count := 0
	one := &Observer{Admitted: func(spillway.Priority, time.Duration) { count++ }, Ended: func(End) { count++ }}
	l := configured(t, Config{Law: limit.NewFixed(1), Observer: Observers(one, one, one)})
	ctx := context.Background()
	if n := testing.AllocsPerRun(1000, func() {
		p, _ := l.Acquire(ctx)
		p.Done(nil)
	}); n != 0 || count == 0 {
		t.Errorf("%v allocations, told %d times", n, count)
	}
}

// Each refusal is counted and reported once.
func TestTheObserverIsToldWhatADryRunWouldHaveRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // passing time does not order goroutines in a bubble
		told := map[spillway.Reason]uint64{}
		by := map[spillway.Priority]uint64{}
		l := configured(t, Config{Law: limit.NewFixed(2), QueueSize: 3, Mode: DryRun, Observer: &Observer{
			WouldReject: func(p spillway.Priority, r *spillway.Rejection) {
				mu.Lock()
				defer mu.Unlock()
				told[r.Reason]++
				by[p]++
			},
			Rejected: func(spillway.Priority, *spillway.Rejection) { t.Error("refused") },
		}})
		learn(t, l, 100*time.Millisecond)
		for i := range 2000 { // 50 a second, where 20 would run
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				p := spillway.Priority(i%3 - 1)
				_ = l.Do(spillway.WithPriority(ctx, p), func(context.Context) error { time.Sleep(100 * time.Millisecond); return nil })
			}()
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		s := l.Stats()
		mu.Lock()
		defer mu.Unlock()
		if s.Rejected != 0 || s.WouldReject < 1000 || s.WouldReject > 1400 {
			t.Errorf("%d refused, %d would have been, of %d", s.Rejected, s.WouldReject, s.Offered)
		}
		for r, n := range s.WouldRejectBy {
			if told[r] != n {
				t.Errorf("told of %d that would be refused for %v, counted %d", told[r], r, n)
			}
		}
		for p, of := range s.ByPriority {
			if by[p] != of.WouldReject {
				t.Errorf("told of %d of %v, counted %d", by[p], p, of.WouldReject)
			}
		}
		if high, low := s.ByPriority[spillway.High], s.ByPriority[spillway.Low]; high.WouldReject*5 > high.Offered || low.WouldReject*10 < low.Offered*9 {
			t.Errorf("high %+v, low %+v", high, low)
		}
		atRest(t, l)
	})
}
