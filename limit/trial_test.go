package limit

import (
	"math"
	"testing"
	"time"
)

// Seven queries within three milliseconds once kept a raise in front of a database with a queue,
// and undid a cut from 8 to 4 although two slots were enough.
func TestAHandfulOfTimesJudgesNoTrial(t *testing.T) {
	for n, want := range map[float64]trialResult{7: undecided, fewTimes: independent} {
		raise := trial{from: 2, to: 3, ranBefore: 2, before: mean{0, 500}, ranAfter: mean{2.9, n}, after: mean{0, n}, cohorts: 1}
		if v, _ := raise.judge(forLatency.criteriaOf(&raise), 0.03, &pace{}, 0.4); v != want {
			t.Errorf("a raise, %v times: %v, want %v", n, v, want)
		}
		cut := trial{from: 8, to: 4, ranBefore: 8, before: mean{0, 500}, ranAfter: mean{4, n}, after: mean{0, n}, cohorts: 1}
		if v, _ := cut.judge(forLatency.criteriaOf(&cut), 0.03, &pace{}, 0.4); v != want {
			t.Errorf("a cut, %v times: %v, want %v", n, v, want)
		}
		if cut.suspicion = true; n < fewTimes {
			if v, _ := cut.judge(forLatency.criteriaOf(&cut), 0.03, &pace{}, 0.4); v != independent {
				t.Errorf("a cut because latency rose, %v times: %v", n, v)
			}
		}
	}
}

// A backend that serves the newest work first hides its queue from the fastest four in five.
func TestAPaceThatFollowedDecides(t *testing.T) {
	before, since := pace{seconds: 9, occupied: 18, work: 1000, n: 1000}, pace{seconds: 9, occupied: 36, work: 1000, n: 1000}
	raise := trial{from: 2, to: 3, ranBefore: 2, before: mean{0, 500}, ranAfter: mean{3, 500}, after: mean{0, 500}, cohorts: 1, paceBefore: before}
	if v, _ := raise.judge(forLatency.criteriaOf(&raise), 0.03, &since, 1); v != follows || raise.longer <= 0 {
		t.Errorf("a raise: %v, by %v", v, raise.longer)
	}
	cut := trial{from: 3, to: 2, ranBefore: 3, before: mean{0, 500}, ranAfter: mean{2, 500}, after: mean{0, 500}, cohorts: 1, paceBefore: since}
	if v, _ := cut.judge(forLatency.criteriaOf(&cut), 0.03, &before, 1); v != follows || cut.longer <= 0 {
		t.Errorf("a cut: %v, by %v", v, cut.longer)
	}
	raise.after = mean{math.Log(1.5), 500} // a pace that did not follow excuses nothing
	if v, _ := raise.judge(forLatency.criteriaOf(&raise), 0.03, &before, 1); v != follows || raise.longer != 0 {
		t.Errorf("a raise that the fastest followed: %v, by %v", v, raise.longer)
	}
}

// If reports hold the slots, the pace is known after three generations of reports. Trials once
// ended sooner, and the latency of lookups did not count. At one and a half times the capacity of 32
// slots that degrade, the limit stayed at 64.
func TestUntilThePaceIsKnownLatencyDecides(t *testing.T) {
	law := func(limit float64) *adaptive {
		a := newAdaptive(forLatency)
		a.limit, a.proven, a.known, a.base, a.est.spread = limit, true, true, mean{-1, 400}, 1
		return a
	}
	a := law(61)
	a.tryLess(reading{}, 39, 61, mean{0, 100}, true)
	for a.phase == cutting && a.trial.from == 61 && a.trial.cohorts < 3 {
		a.judgeCut(reading{at: time.Second, logTime: -0.75, n: 100, inFlight: 39, enforced: 39, full: true})
	}
	if a.trial.from == 61 || a.limit > 50 {
		t.Errorf("after a cut that latency followed: %s, because %s", a.State(), a.why)
	}
	a = law(64)
	a.tryMore(reading{}, 78, 64, mean{0, 170})
	for a.phase == raising && a.trial.cohorts < 2 {
		a.judgeRaise(reading{at: time.Second, logTime: 0.36, n: 85, inFlight: 78, enforced: 78, full: true})
	}
	if a.phase != holding || a.limit > 70 {
		t.Errorf("after a raise that latency followed: %s, because %s", a.State(), a.why)
	}
}

// While forty more slots filled, latency rose, and the first readings contained half of the rise.
// The other half once looked like a gain of throughput. The limit went from 59 to 201 for a backend
// of forty slots.
func TestARaiseThatLatencyFollowsIsNotJudgedWhileTheSlotsFill(t *testing.T) {
	for name, c := range map[string]struct {
		n, level float64
		kept     bool
	}{
		"fewer times than slots":            {24, 0.3, false},
		"as many as there are slots":        {89, 0.3, true},
		"fewer, and latency did not follow": {24, 0, true},
	} {
		a := newAdaptive(forLatency)
		a.limit, a.proven, a.known, a.base, a.est.spread = 59, true, true, mean{0, 400}, 0.1
		a.tryMore(reading{}, 89, 59, mean{0, 400})
		a.judgeRaise(reading{at: time.Second, logTime: c.level, n: c.n, inFlight: 89, enforced: 89})
		if kept := a.limit > 59 && a.trial.cohorts != 1 || a.phase != raising; kept != c.kept {
			t.Errorf("%s: the law is %s", name, a.State())
		}
	}
}

func TestARaiseThatStaysRefusedIsTriedLessOften(t *testing.T) {
	a := newAdaptive(forLatency)
	pause := func(refused int) time.Duration {
		a.raises.vain = refused
		return a.raisePause(reading{elapsed: 10 * time.Millisecond}, 0.4, 0.4)
	}
	for refused, want := range []time.Duration{200, 400, 800, 1600, 3200, 5000, 5000} {
		if got := pause(refused); got != want*time.Millisecond {
			t.Errorf("after %d: %v, want %v ms", refused, got, int(want))
		}
	}
	if a.former = 10 * a.limit; pause(5) != raiseSoon {
		t.Errorf("while lost capacity may come back: %v", pause(5))
	}
}
