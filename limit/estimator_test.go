package limit

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"
)

// If 99 of 100 calls fail, a cohort has one time. The spread of one time once counted as zero, so
// chance decided every trial, and the limit fell from 20 to 1.
func TestALimitSurvivesThatNearlyAllFails(t *testing.T) {
	law := newAdaptive(forLatency)
	m := newModel(law, 20, 15*time.Millisecond)
	m.noise = 0.3
	m.run(10 * time.Second)
	m.outcome = func(r *rand.Rand, o Outcome) Outcome {
		if r.IntN(100) > 0 {
			return Failed
		}
		return o
	}
	m.run(time.Minute)
	if got := m.middle(time.Minute); got < 15 {
		t.Errorf("limit %d in front of 20 slots: %s, %s", got, law.State(), law.Why())
	}
}

func TestOneTimeHasNoSpread(t *testing.T) {
	e := newEstimator(&aim{})
	for range 10 {
		e.enter(&reading{n: 1, spread: 0.001})
	}
	if e.spread != firstSpread {
		t.Errorf("spread %v, want what it was, %v", e.spread, firstSpread)
	}
}

// A cohort left open in the evening is read in the morning. By Little's law each member once
// seemed to have run all night, and the next cut was kept because the pace was much better.
func TestAQuietNightIsNotWork(t *testing.T) {
	law := newAdaptive(forLatency)
	m := newModel(law, 5, 15*time.Millisecond)
	m.run(time.Minute)
	longest := 0.0
	for range 10 { // the evening finds the law in different phases
		for len(m.ends) > 0 {
			p := heap.Pop(&m.ends).(pending)
			m.now = p.at
			law.Observe(p.s, m.load())
		}
		m.now += 8 * time.Hour
		m.until(m.now+1700*time.Millisecond, func() bool {
			for _, p := range []pace{law.pace, law.trial.paceBefore} {
				longest = max(longest, p.occupied/max(p.n, 1))
			}
			return false
		})
	}
	if longest > 1 || longest == 0 {
		t.Errorf("work of 15 ms took %.3g s by the pace", longest)
	}
}
