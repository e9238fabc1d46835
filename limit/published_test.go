package limit

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestLawsFindTheSlots drives every moving law against a backend with flat latency up to a number
// of slots and a queue beyond. Callers wait for three times the service time. Each law has bounds
// that it is known to reach: a law that depends on missed deadlines stays near the limit at which
// deadlines are missed.
func TestLawsFindTheSlots(t *testing.T) {
	bounds := map[string][2]float64{ // of the slots
		"aimd":      {0.9, 3.2},
		"gradient2": {0.8, 3.2},
		"adaptive":  {0.8, 1.3},
	}
	for name, bound := range bounds {
		for _, slots := range []int{10, 50, 200} {
			t.Run(fmt.Sprintf("%s/%d", name, slots), func(t *testing.T) {
				if slots > 50 {
					oneGoroutine(t)
				}
				law := laws[name].build()
				m := newModel(law, slots, 50*time.Millisecond)
				m.deadline = 150 * time.Millisecond
				m.run(time.Minute)
				if name == "gradient2" { // grows by less than one a second
					m.run(4 * time.Minute)
				}
				const windows = 5 // a law wanders: one window may show the peak of a trial
				got := 0.0
				for range windows {
					got += float64(m.middle(20*time.Second)) / float64(slots) / windows
				}
				if got < bound[0] || got > bound[1] {
					t.Errorf("ended at %.2f of %d slots, want %.1f to %.1f: %s", got, slots, bound[0], bound[1], law.State())
				}
			})
		}
	}
}

// TestASlowerBackendIsNotAQueueForEver makes a backend with one slot slower and unlimited. State
// learned at a limit near one must not keep the law at such a limit.
func TestASlowerBackendIsNotAQueueForEver(t *testing.T) {
	for _, slower := range []time.Duration{2, 5, 20} {
		for _, name := range []string{"aimd", "gradient2", "adaptive"} {
			t.Run(fmt.Sprintf("%s/%dx", name, slower), func(t *testing.T) {
				law := laws[name].build()
				m := newModel(law, 1, 10*time.Millisecond)
				m.deadline = 30 * time.Millisecond
				m.run(2 * time.Minute)
				from := law.Limit()
				m.slots, m.deadline, m.service = nil, 0, m.service*slower
				if !m.until(m.now+20*time.Minute, func() bool { return law.Limit() >= from+16 }) {
					t.Errorf("from limit %d to %d only: %s, %s", from, law.Limit(), law.State(), law.Why())
				}
			})
		}
	}
}

// TestAtOneLatencyIsTheBaseline makes a backend with one slot slightly slower, then unlimited. The
// excess was once too small for a trial, and at a limit of 1 nothing could be trimmed, so the law
// stayed at 1 for ever.
func TestAtOneLatencyIsTheBaseline(t *testing.T) {
	for percent := time.Duration(104); percent <= 136; percent += 4 {
		law := laws["adaptive"].build()
		m := newModel(law, 1, 10*time.Millisecond)
		m.deadline = 30 * time.Millisecond
		m.run(2 * time.Minute)
		if !m.until(m.now+time.Minute, func() bool { return law.Limit() == 1 }) {
			t.Fatalf("never at 1 before one slot: %s", law.State())
		}
		m.deadline, m.service = 0, m.service*percent/100
		m.run(time.Minute)
		m.slots = nil
		if !m.until(m.now+time.Minute, func() bool { return law.Limit() >= 16 }) {
			t.Errorf("with times at %d %%, at limit %d after a minute: %s, %s", percent, law.Limit(), law.State(), law.Why())
		}
	}
}

func TestFailuresSayNothingEitherWay(t *testing.T) {
	for _, name := range []string{"aimd", "gradient2", "passive"} {
		for _, o := range []Outcome{Failed, Unknown} {
			law := laws[name].build()
			from := law.Limit()
			m := newModel(law, 0, 10*time.Millisecond)
			m.demand, m.outcome = 2*from, func(*rand.Rand, Outcome) Outcome { return o }
			m.run(10 * time.Second)
			if got := law.Limit(); got != from {
				t.Errorf("%s went from %d to %d by work that failed (%d): %s", name, from, got, o, law.State())
			}
		}
	}
}

func TestAIMDPaysForARoundOnce(t *testing.T) {
	law := must(newAIMD(AIMDConfig{}))
	law.value = 100
	for range 100 {
		law.Admit(0, Load{InFlight: 100})
	}
	for i := range 100 {
		law.Observe(Sample{Seq: uint64(i + 1), End: time.Second, Outcome: Overload}, Load{InFlight: 99 - i})
	}
	if got := law.Limit(); got != 90 {
		t.Errorf("a hundred refusals of one round cut 100 to %d, want 90", got)
	}
	law.Admit(time.Second, Load{InFlight: 1})
	law.Observe(Sample{Seq: 101, Start: time.Second, End: 2 * time.Second, Outcome: Deadline}, Load{})
	if got := law.Limit(); got != 81 {
		t.Errorf("a missed deadline of the next round cut 90 to %d, want 81", got)
	}
}

func TestAIMDTakesASlowSuccessForOverload(t *testing.T) {
	law := must(newAIMD(AIMDConfig{Timeout: time.Second}))
	law.value = 10
	law.Admit(0, Load{InFlight: 1})
	law.Observe(Sample{Seq: 1, End: 1500 * time.Millisecond}, Load{})
	if got, want := law.Why(), "slower than the timeout"; law.Limit() != 9 || got != want {
		t.Errorf("limit %d because %q, want 9 because %q", law.Limit(), got, want)
	}
	if got, want := law.State(), "backing off: 1.5s against 1s"; got != want {
		t.Errorf("says %q, want %q", got, want)
	}
}

func TestAnUnusedLimitDoesNotGrow(t *testing.T) {
	for _, name := range []string{"aimd", "gradient2"} {
		law := laws[name].build()
		m := newModel(law, 0, 20*time.Millisecond)
		m.demand = 3
		m.run(5 * time.Minute)
		if got := law.Limit(); got != 20 {
			t.Errorf("%s went from 20 to %d with 3 in flight: %s", name, got, law.State())
		}
	}
}

func TestGradient2ForgetsABadTimeAndGrows(t *testing.T) {
	law := must(newGradient2(Gradient2Config{}))
	m := newModel(law, 0, 500*time.Millisecond)
	m.run(20 * time.Second)
	m.service = 50 * time.Millisecond
	m.run(2 * time.Minute)
	if got := law.long[0]; got > 2.1*float64(m.service) {
		t.Errorf("remembers %v two calm minutes after a bad time", rounded(got))
	}
	if got := law.Limit(); got < 50 {
		t.Errorf("limit %d after two calm minutes: %s", got, law.State())
	}
}

// TestClassesAreNotMixed adds slow work of another class. The speed of the fast class stays.
func TestClassesAreNotMixed(t *testing.T) {
	law := laws["gradient2"].build()
	at, seq := time.Duration(0), uint64(0)
	limit := 0
	for i := range 60_000 {
		at += 5 * time.Millisecond
		class, lat := uint8(1), 10*time.Millisecond
		if i >= 30_000 && i%2 == 0 {
			class, lat = 3, 500*time.Millisecond
		}
		if i == 29_999 {
			limit = law.Limit()
		}
		seq++
		law.Admit(at, Load{InFlight: 1, Queued: 1})
		law.Observe(Sample{Seq: seq, Start: at - min(lat, at), End: at, Class: class}, Load{Queued: 1})
	}
	if got := law.Limit(); got < limit {
		t.Errorf("slow work beside the fast brought the limit from %d to %d: %s", limit, got, law.Why())
	}
}

// An hour without traffic during a scheduled trial once counted as the cost of the trial, and
// postponed the next scheduled cut by forty hours.
func TestAnIdleHourInATrialPutsTheNextOffByMinutes(t *testing.T) {
	law := newAdaptive(forLatency)
	m := newModel(law, 8, 20*time.Millisecond)
	for range 5 {
		if !m.until(m.now+time.Hour, func() bool { return law.phase == cutting && !law.trial.suspicion && !law.est.draining }) {
			t.Fatal("no scheduled trial in an hour:", law.State())
		}
		for len(m.ends) > 0 {
			p := heap.Pop(&m.ends).(pending)
			m.now = p.at
			law.Observe(p.s, m.load())
		}
		m.now += time.Hour
		m.until(m.now+time.Minute, func() bool { return law.phase != cutting })
		if law.cuts.every > 10*time.Minute {
			t.Fatalf("the next trial is put off by %v", law.cuts.every)
		}
	}
}

func TestNonsenseIsRefusedWithAdvice(t *testing.T) {
	for what, build := range map[string]func() (Law, error){
		"AIMD: Timeout":        func() (Law, error) { return NewAIMD(AIMDConfig{Timeout: -1}) },
		"Gradient2: Tolerance": func() (Law, error) { return NewGradient2(Gradient2Config{Tolerance: math.NaN()}) },
	} {
		law, err := build()
		if law != nil || err == nil || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), "want") {
			t.Errorf("%s: error %v does not say what to do", what, err)
		}
	}
}
