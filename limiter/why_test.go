package limiter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limit"
)

// says fails unless the limiter's state starts with begin.
func says(t *testing.T, l *Limiter, begin string) {
	t.Helper()
	if s := l.Stats(); !strings.HasPrefix(s.State, begin) {
		t.Errorf("the limit is %d and the state %q, want %q…", s.Limit, s.State, begin)
	}
}

// decided fails unless the last change of the limit has the given values.
func decided(t *testing.T, l *Limiter, from, to int, why string) {
	t.Helper()
	all := l.Stats().Decisions
	if len(all) == 0 || all[len(all)-1].From != from || all[len(all)-1].To != to || all[len(all)-1].Why != why {
		t.Errorf("decisions %+v, want the last from %d to %d: %s", all, from, to, why)
	}
}

func TestStateAndDecisionsNameTheSlowStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := configured(t, Config{Law: limit.NewFixed(10), SlowStart: 10 * time.Second})
		says(t, l, "slow start: 1 instead of 10; ")
		for range 9 {
			acquire(t, l).Done(nil)
			time.Sleep(time.Second)
		}
		says(t, l, "slow start: 9 instead of 10; ")
		decided(t, l, 1, 9, "slow start") // the steps of a slow start are one change
		time.Sleep(time.Second)
		acquire(t, l).Done(nil)
		says(t, l, "fixed")
		decided(t, l, 9, 10, "no more slow start")
	})
}

func TestStateNamesTheEstimateThatADryRunLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := configured(t, Config{Mode: DryRun})
		for range 50 {
			acquire(t, l)
		}
		l.SetMode(Enforce)
		says(t, l, "estimate of the dry run, which fades: 50 instead of 32; the law: growing")
		time.Sleep(handover)
		acquire(t, l.released()).Done(nil)
		decided(t, l, 50, 32, "no more estimate of the dry run, which fades")
	})
}

// released ends all work of l.
func (l *Limiter) released() *Limiter {
	for w := l.gate.Oldest(); w != nil; w = l.gate.Oldest() {
		l.permit(w.Owner.(*slot)).Done(nil)
	}
	return l
}

func TestStateSaysThatNoEndIsASample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := configured(t, Config{})
		for range 200 {
			acquire(t, l).Release()
		}
		says(t, l, "no sample in the last 200 ends, because work is not ended with Done; growing")
		for range 300 {
			acquire(t, l).Done(errors.New("its own"))
		}
		says(t, l, "no sample in the last 500 ends, because work fails; growing")
		acquire(t, l).Done(nil)
		says(t, l, "growing")
	})
}

func TestAModeThatDoesNotExistChangesNothing(t *testing.T) {
	l := fixed(t, 1, 0)
	p := acquire(t, l)
	l.SetMode(99)
	if _, err := l.TryAcquire(t.Context()); err == nil || l.Stats().Mode != Enforce {
		t.Errorf("protection is off: %v, mode %v", err, l.Stats().Mode)
	}
	p.Done(nil)
}

type careless struct{ limit.Law }

func (careless) Limit() int { return -5 }

func TestALawThatSaysLessThanOneIsTakenForOne(t *testing.T) {
	l := configured(t, Config{Law: careless{limit.NewFixed(1)}})
	acquire(t, l).Done(nil)
	if s := l.Stats(); s.Limit != 1 || s.Demand != s.Demand {
		t.Errorf("limit %d, demand %v", s.Limit, s.Demand)
	}
}

// rising grows by one with every end, and reports why.
type rising struct{ n int }

func (r *rising) Limit() int                       { return r.n }
func (r *rising) Admit(time.Duration, limit.Load)  {}
func (r *rising) Observe(limit.Sample, limit.Load) { r.n++ }
func (r *rising) Name() string                     { return "rising" }
func (r *rising) State() string                    { return "rising" }
func (r *rising) Why() string                      { return "an end" }

// Regression: Stats joined two logs, of the law's changes and of overrulings. While the law
// is overruled, its limit is not the limiter's limit.
func TestThereIsOneLogOfWhatTheLimitWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		l := configured(t, Config{Law: &rising{n: 1}, Observer: &Observer{LimitChanged: func(d limit.Decision) {
			told = append(told, fmt.Sprint(d.From, " to ", d.To, ": ", d.Why))
		}}})
		use := func(n int) {
			for range n {
				time.Sleep(time.Second)
				acquire(t, l).Done(nil)
			}
		}
		use(3)
		_ = l.SetBounds(0, 4)
		use(3)
		_ = l.SetBounds(0, 0)
		use(1)
		s := time.Second
		want := []limit.Decision{
			{At: 3 * s, From: 1, To: 4, Why: "an end"},
			{At: 6 * s, From: 4, To: 7, Why: "no more upper bound"},
			{At: 7 * s, From: 7, To: 8, Why: "an end"},
		}
		if got := l.Stats().Decisions; !slices.Equal(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		// Regression: the observer got the law's state instead of the reason.
		if want := []string{"1 to 2: an end", "2 to 3: an end", "3 to 4: an end", "4 to 7: no more upper bound", "7 to 8: an end"}; !slices.Equal(told, want) {
			t.Errorf("the observer was told %q, want %q", told, want)
		}
	})
}

// Regression: enforcement began with much work in flight and refused everything, but State
// said only that the law was growing.
func TestStateSaysThatMoreRunsThanTheLimitAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := configured(t, Config{Law: limit.NewFixed(2), QueueSize: -1, Mode: DryRun})
		var running []Permit
		for range 5 {
			running = append(running, acquire(t, l))
		}
		if s := l.Stats().State; strings.Contains(s, "allowed") {
			t.Errorf("a dry run allows all: %q", s)
		}
		l.SetMode(Enforce)
		says(t, l, "5 slots are in use and 2 are allowed; fixed")
		if _, err := l.TryAcquire(t.Context()); err == nil {
			t.Error("it was admitted")
		}
		running[0].Done(nil)
		says(t, l, "fixed") // twice the limit is in use, as after a cut
	})
}
