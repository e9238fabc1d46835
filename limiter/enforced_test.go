package limiter

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/limit"
)

// witness is the adaptive law. At each event witness checks that Load.Enforced is the
// limit that the limiter enforces.
type witness struct {
	adaptiveLaw
	t      *testing.T
	lim    *Limiter
	events int
	above  int // events with an enforced limit above the law's own limit
	below  int // events with an enforced limit below the law's own limit
}

func (w *witness) check(what string, load limit.Load, want int) {
	w.events++
	if own := w.Limit(); load.Enforced > own {
		w.above++
	} else if load.Enforced < own {
		w.below++
	}
	if load.Enforced != want {
		w.t.Errorf("%s: told that %d are enforced where %d are, with %+v", what, load.Enforced, want, load)
	}
}

func (w *witness) Admit(at time.Duration, load limit.Load) {
	// For work admitted over the limit, Enforced is at least InFlight.
	w.check("admit", load, max(w.lim.gate.Limit(), w.lim.gate.InFlight()))
	w.adaptiveLaw.Admit(at, load)
}

func (w *witness) Observe(s limit.Sample, load limit.Load) {
	w.check("observe", load, w.lim.gate.Limit())
	w.adaptiveLaw.Observe(s, load)
}

// own is the law's own limit.
func (w *witness) own() int {
	w.lim.lock(w.lim.now())
	defer w.lim.unlock()
	return w.Limit()
}

// watched returns a limiter with a witness, in virtual time. The witness takes the place of the adaptive law that New
// makes, so that the gate tells the witness of each end while the end is settled, as with every law of this module.
func watched(t *testing.T, cfg Config) (*Limiter, *witness) {
	l := configured(t, cfg)
	return l, witnessed(t, l)
}

func witnessed(t *testing.T, l *Limiter) *witness {
	w := &witness{adaptiveLaw: limit.NewAdaptive().(adaptiveLaw), t: t, lim: l}
	l.lock(l.now())
	defer l.unlock()
	l.law = w
	l.gate.SetLaw(w)
	return w
}

// busy sends work of 20 ms for the duration d, more than a backend with the given slots
// can do, and calls each every 10 ms.
func busy(t *testing.T, l *Limiter, slots int, d time.Duration, each func(passed time.Duration)) {
	backend := make(chan struct{}, slots)
	start := time.Now()
	gap := 20 * time.Millisecond / time.Duration(2*slots)
	for next := time.Duration(0); time.Since(start) < d; {
		go func() {
			_ = l.Do(t.Context(), func(context.Context) error {
				backend <- struct{}{}
				time.Sleep(20 * time.Millisecond)
				<-backend
				return nil
			})
		}()
		if passed := time.Since(start); each != nil && passed >= next {
			synctest.Wait()
			each(passed)
			next += 10 * time.Millisecond
		}
		time.Sleep(gap)
	}
	time.Sleep(time.Minute)
	atRest(t, l)
}

func TestTheAdaptiveLawIsToldWhatIsEnforced(t *testing.T) {
	pressing := func() Signal {
		n := 0.0
		return Gauge("g", func() float64 { n++; return map[bool]float64{true: 2, false: 0}[int(n)%20 < 10] }, 1)
	}
	for name, c := range map[string]struct {
		cfg          Config
		change       func(l *Limiter)
		above, below bool // whether the law must have seen such events
	}{
		"its own limit": {},
		"lower bound":   {change: func(l *Limiter) { _ = l.SetBounds(40, 0) }, above: true},
		"upper bound":   {change: func(l *Limiter) { _ = l.SetBounds(0, 3) }, below: true},
		"slow start":    {cfg: Config{SlowStart: 3 * time.Second}, below: true},
		"signal":        {cfg: Config{Signals: []Signal{pressing()}}, below: true},
		"over-admitted": {cfg: Config{MaxRefused: 0.1}, above: true},
		"dry run":       {cfg: Config{Mode: DryRun}, above: true},
		"lease":         {change: func(l *Limiter) { l.SetLease(3, time.Now().Add(time.Hour), "ours") }, below: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, w := watched(t, c.cfg)
				if c.change != nil {
					c.change(l)
				}
				busy(t, l, 8, 5*time.Second, nil)
				if w.events < 1000 || w.above > 0 != c.above || w.below > 0 != c.below {
					t.Errorf("of %d events %d with more and %d with less than the law's own limit", w.events, w.above, w.below)
				}
			})
		})
	}
}

// The estimate of a dry run is a lower bound while the adaptive law finds its own limit:
// in full for a second, then fading.
func TestTheAdaptiveLawIsToldOfTheEstimateThatFades(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := configured(t, Config{Mode: DryRun})
		for range 50 {
			acquire(t, l)
		}
		l.SetMode(Enforce)
		l.released()
		w := witnessed(t, l) // replaces the law that SetMode has just started
		last, own := l.Limit(), 0
		busy(t, l, 1, 3*time.Second, func(passed time.Duration) {
			own = w.own()
			n := l.Limit()
			if passed < time.Second && n != 50 || n > last && n != own {
				t.Errorf("after %v the limit is %d and was %d, the law's own is %d", passed, n, last, own)
			}
			last = n
		})
		if w.above == 0 || last != own {
			t.Errorf("told %d times that more was enforced; at last %d is, of its own %d", w.above, last, own)
		}
	})
}

// stepwise is a law whose limit is set from outside.
type stepwise struct{ n int }

func (s *stepwise) Limit() int                       { return s.n }
func (s *stepwise) Admit(time.Duration, limit.Load)  {}
func (s *stepwise) Observe(limit.Sample, limit.Load) {}

// Regression: the share of a slow start was a share of the law's limit at the last arrival, so
// a cut limit was enforced in full. A lower bound above the law's limit was reached in one
// leap, at the end.
func TestSlowStartIsTheShareOfWhatTheLimitWouldBe(t *testing.T) {
	law := &stepwise{n: 100}
	l := configured(t, Config{Law: law, SlowStart: 10 * time.Second})
	at := func(now time.Duration) int {
		l.tick(now)
		l.consult()
		return l.gate.Limit()
	}
	at(time.Hour)
	if n := at(time.Hour + 5*time.Second); n != 50 {
		t.Errorf("half of the time has passed, and the limit is %d of 100", n)
	}
	law.n = 60
	l.gate.Arrive(time.Hour+5*time.Second, gate.Arrival{Cost: 1, Deadline: gate.Never}, nil)
	l.consult()
	if l.gate.Limit() != 30 || l.overruledBy() != "slow start" {
		t.Errorf("half of the time has passed, and the limit is %d of 60, %q", l.gate.Limit(), l.overruledBy())
	}
	l.over.low = 80
	if n := at(time.Hour + 5*time.Second); n != 40 {
		t.Errorf("half of the time has passed, and the limit is %d of the bound 80", n)
	}
	l.over.low, l.over.high = 0, 20
	if n := at(time.Hour + 9*time.Second); n != 18 {
		t.Errorf("nine tenths of the time have passed, and the limit is %d of the bound 20", n)
	}
	if n := at(time.Hour + 10*time.Second); n != 20 || l.over.moving() || l.overruledBy() != "upper bound" {
		t.Errorf("over, and the limit is %d, %q", n, l.overruledBy())
	}
}

// adaptiveLaw is all that the adaptive law can do.
type adaptiveLaw interface {
	limit.Law
	limit.Forgetter
	limit.Reporter
}
