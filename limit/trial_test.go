package limit

import (
	"testing"
	"time"
)

// Seven queries, done within three milliseconds, once kept a raise in front of a database
// that queued, and gave back a cut from 8 to 4 where two were enough.
func TestAHandfulOfTimesJudgesNoTrial(t *testing.T) {
	for n, want := range map[float64]verdict{7: undecided, fewTimes: independent} {
		raise := trial{from: 2, to: 3, inFlight: 2, before: mean{0, 500}, ran: mean{2.9, n}, after: mean{0, n}, cohorts: 1}
		if v, _ := raise.judge(forLatency.raiseTest(false), 0.03, &pace{}, 0.4, false); v != want {
			t.Errorf("a raise, %v times: %v, want %v", n, v, want)
		}
		cut := trial{from: 8, to: 4, inFlight: 8, before: mean{0, 500}, ran: mean{4, n}, after: mean{0, n}, cohorts: 1}
		if v, _ := cut.judge(forLatency.cutTest(cut.suspicion, false), 0.03, &pace{}, 0.4, false); v != want {
			t.Errorf("a cut, %v times: %v, want %v", n, v, want)
		}
		if cut.suspicion = true; n < fewTimes {
			if v, _ := cut.judge(forLatency.cutTest(cut.suspicion, false), 0.03, &pace{}, 0.4, false); v != independent {
				t.Errorf("a cut because latency rose, %v times: %v", n, v)
			}
		}
	}
}

func TestThePaceRefusesARaiseInDoubtAndGoesOnWithACut(t *testing.T) {
	before, since := pace{seconds: 1, occupied: 2, work: 1000, n: 1000}, pace{seconds: 0.1, occupied: 0.3, work: 85, n: 85}
	raise := trial{from: 2, to: 3, inFlight: 2, before: mean{0, 500}, ran: mean{3, 100}, after: mean{0, 100}, cohorts: 2, paced: before}
	if v, _ := raise.judge(forLatency.raiseTest(false), 0.03, &since, 2, false); v != follows || raise.longer <= 0 {
		t.Errorf("a raise: %v, by %v", v, raise.longer)
	}
	cut := trial{from: 3, to: 2, inFlight: 3, before: mean{0, 100}, ran: mean{2, 500}, after: mean{0, 500}, cohorts: 3, paced: since}
	if v, _ := cut.judge(forLatency.cutTest(cut.suspicion, false), 0.03, &before, 3, false); v != undecided {
		t.Errorf("a cut: %v", v)
	}
}

func TestARaiseThatStaysRefusedIsTriedLessOften(t *testing.T) {
	a := NewAdaptive()
	pause := func(refused int) time.Duration {
		a.raises.vain = refused
		return a.raisePause(reading{took: 10 * time.Millisecond}, 0.4, 0.4)
	}
	for refused, want := range []time.Duration{200, 400, 800, 1600, 3200, 5000, 5000} {
		if got := pause(refused); got != want*time.Millisecond {
			t.Errorf("after %d: %v, want %v ms", refused, got, int(want))
		}
	}
	if a.former = 10 * a.limit; pause(5) != raisePause {
		t.Errorf("while lost capacity may come back: %v", pause(5))
	}
}
