package limit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
)

// TestAnErrorHasOneOutcome fixes the precedence of outcomes for errors that match several. The pool
// and the limiter once had opposite orders.
func TestAnErrorHasOneOutcome(t *testing.T) {
	refused := &spillway.Rejection{Reason: spillway.ReasonQueueFull}
	for name, c := range map[string]struct {
		err  error
		want Outcome
	}{
		"nil":                          {nil, Success},
		"deadline":                     {fmt.Errorf("query: %w", context.DeadlineExceeded), Deadline},
		"canceled":                     {fmt.Errorf("query: %w", context.Canceled), Canceled},
		"refused below":                {fmt.Errorf("call: %w", refused), Overload},
		"refused below, then too late": {errors.Join(context.DeadlineExceeded, refused), Overload},
		"deadline and canceled":        {errors.Join(context.Canceled, context.DeadlineExceeded), Deadline},
		"its own":                      {errors.New("no such patient"), Failed},
	} {
		if got := OutcomeOf(c.err); got != c.want {
			t.Errorf("%s: outcome %d, want %d", name, got, c.want)
		}
	}
}

// Permits are released on goroutines that do not recover from panics. An error whose Is panicked
// once ended the process.
func TestAnErrorWhoseMethodsPanicIsAFailure(t *testing.T) {
	for name, err := range map[string]error{
		"its Is panics":                     panicking{},
		"a nil pointer":                     (*pointer)(nil),
		"its Is panics, and it is a cancel": fmt.Errorf("%w, %w", panicking{}, context.Canceled),
	} {
		if got := OutcomeOf(err); got != Failed {
			t.Errorf("%s: %v", name, got)
		}
	}
}

type panicking struct{}

func (panicking) Error() string { return "an error" }

func (panicking) Is(error) bool { panic("boom") }

type pointer struct{ cause error }

func (p *pointer) Error() string { return p.cause.Error() }

func (p *pointer) Unwrap() error { return p.cause }

func TestEveryOutcomeHasAName(t *testing.T) {
	seen := map[string]bool{}
	for o := Success; o <= Unknown; o++ {
		seen[o.String()] = true
	}
	if len(seen) != 6 || Outcome(99).String() != "outcome(99)" {
		t.Errorf("%v, and %v", seen, Outcome(99))
	}
}

// A law must treat an outcome that it does not know as Unknown.
func TestALawTakesAnOutcomeItDoesNotKnowForUnknown(t *testing.T) {
	eachLaw(t, func(t *testing.T, c contestant) {
		limits := func(as Outcome) (all []int) {
			law := c.build()
			m := newModel(law, 8, 20*time.Millisecond)
			m.outcome = func(r *rand.Rand, o Outcome) Outcome {
				if r.IntN(3) == 0 {
					return as
				}
				return o
			}
			m.until(20*time.Second, func() bool { all = append(all, law.Limit()); return false })
			return all
		}
		if later := limits(99); !slices.Equal(later, limits(Unknown)) {
			t.Error("it is taken for something else")
		}
	})
}

// If a backend refuses one call in ten, three or none of twenty may be refused by chance. With
// nearly equal times, three refusals once looked like a significant rise of latency, and each
// such reading caused a cut.
func TestChanceInTheRefusedShareIsNoRiseOfLatency(t *testing.T) {
	oneGoroutine(t)
	law := newAdaptive(forLatency)
	m := newModel(law, 40, 20*time.Millisecond)
	m.noise, m.demand = 0.01, 20
	m.outcome = func(r *rand.Rand, o Outcome) Outcome {
		if r.IntN(10) == 0 {
			return Overload
		}
		return o
	}
	m.run(5 * time.Second)
	suspicions, n := 0, law.Limit()
	m.until(m.now+5*time.Minute, func() bool {
		if was := n; law.Limit() != was {
			if n = law.Limit(); n < was && law.phase == cutting && law.trial.suspicion {
				suspicions++
			}
		}
		return false
	})
	if suspicions > 3 {
		t.Errorf("in five minutes the law suspected a queue %d times", suspicions)
	}
}

// If no work waits, a chance fall of latency must not keep the limit low. If latency is known not
// to follow, the limit need not fall further.
func TestSheddingGoesBackUnlessLatencyClearlyFell(t *testing.T) {
	shedding := func(spread float64) *adaptive {
		a := newAdaptive(forLatency)
		a.limit, a.proven, a.known, a.base = 40, true, true, mean{0, 100}
		a.est.spread = spread
		a.shed(reading{at: time.Minute, logTime: 1, n: 16, inFlight: 40, enforced: 40, lost: 0.5, done: 100, workSize: 40})
		if a.phase != shedding || a.limit >= 40 {
			t.Fatalf("does not shed: %s", a.State())
		}
		return a
	}
	for _, c := range []struct {
		says   string
		spread float64
		r      reading
		limit  func(n float64) bool
	}{
		{"less is lost, and latency fell clearly", 0.1, reading{logTime: 0.5, lost: 0.1}, func(n float64) bool { return n < 40 }},
		{"less is lost, and latency fell as it may by chance", 0.8, reading{logTime: 0.5, lost: 0.1}, func(n float64) bool { return n == 40 }},
		{"less is lost, latency fell clearly, and as much is done", 0.1, reading{logTime: 0.5, lost: 0.1, full: true, done: 90}, func(n float64) bool { return n < 40 }},
		{"less is lost, latency fell clearly, and less is done", 0.1, reading{logTime: 0.5, lost: 0.1, full: true, done: 40}, func(n float64) bool { return n == 40 }},
		{"less is lost, latency fell clearly, and less comes", 0.1, reading{logTime: 0.5, lost: 0.1, done: 40}, func(n float64) bool { return n < 40 }},
		{"less is lost, of latency nothing is known", 0.8, reading{logTime: 1, lost: 0.1, blind: true, open: true}, func(n float64) bool { return n < 40 }},
		{"as much is lost, and latency fell clearly", 0.1, reading{logTime: 0.5, lost: 0.5}, func(n float64) bool { return n < 15 }},
		{"as much is lost, and latency did not fall", 0.1, reading{logTime: 1, lost: 0.5}, func(n float64) bool { return n == 40 }},
		{"as much is lost, and latency is at least what it was", 0.1, reading{logTime: 1, lost: 0.5, open: true}, func(n float64) bool { return n < 15 }},
	} {
		a := shedding(c.spread)
		c.r.at, c.r.n, c.r.inFlight, c.r.enforced = time.Minute+time.Second, 16, a.limit, a.limit
		c.r.elapsed, c.r.workSize = time.Second, 40
		a.decide(c.r)
		if !c.limit(a.limit) {
			t.Errorf("%s: the limit is %v, %s", c.says, a.limit, a.State())
		}
	}
}
