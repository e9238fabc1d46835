package limit

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// watch returns a Passive law and a model of an unprotected backend.
func watch(slots int, service time.Duration) (*passive, *model) {
	law := newPassive()
	m := newModel(law, slots, service)
	m.passive = true
	return law, m
}

func (m *model) with(inFlight int, d time.Duration) *model {
	m.demand = inFlight
	m.run(d)
	return m
}

func TestPassiveKnowsALowerBoundUntilLatencyRises(t *testing.T) {
	law, m := watch(100, 50*time.Millisecond)
	m.with(10, 10*time.Second).with(37, time.Minute)
	if got, want := law.State(), "estimate: never saturated, at least 37"; got != want || law.Limit() != 37 {
		t.Errorf("says %q with limit %d, want %q", got, law.Limit(), want)
	}
}

func TestPassiveEstimatesTheKneeOfASaturatedBackend(t *testing.T) {
	for _, slots := range []int{4, 40, 300} {
		if slots > 40 {
			oneGoroutine(t)
		}
		law, m := watch(slots, 50*time.Millisecond)
		m.with(slots/2, 30*time.Second).with(3*slots, 30*time.Second)
		if got := float64(law.Limit()) / float64(slots); got < 0.85 || got > 1.15 {
			t.Errorf("estimates %d for %d slots: %s", law.Limit(), slots, law.State())
		}
		if s := law.State(); !strings.HasPrefix(s, "estimate: about ") || !strings.Contains(s, "saturated") {
			t.Errorf("says %q", s)
		}
	}
}

func TestPassiveKeepsItsEstimateThroughQuietTimes(t *testing.T) {
	oneGoroutine(t)
	law, m := watch(40, 50*time.Millisecond)
	m.with(20, time.Minute).with(120, time.Minute)
	knee := law.Limit()
	m.with(10, 5*time.Minute)
	if got := law.Limit(); got < knee-1 || got > knee {
		t.Errorf("%d became %d in five quiet minutes", knee, got)
	}
	m.with(10, 40*time.Minute).with(25, time.Minute)
	if got := law.State(); !strings.Contains(got, "never saturated") {
		t.Errorf("remembers for ever: %q", got)
	}
}

func TestPassiveTellsASlowBackendFromAQueueWhereItCan(t *testing.T) {
	law, m := watch(40, 50*time.Millisecond)
	m.with(30, time.Minute)
	m.service *= 3
	m.with(10, time.Minute)
	if got := law.State(); law.Limit() < 25 || law.Unsafe() {
		t.Errorf("limit %d: %q", law.Limit(), got)
	}
}

func TestPassiveGrowsWithABackendThatGrew(t *testing.T) {
	law, m := watch(20, 50*time.Millisecond)
	m.with(10, time.Minute).with(60, time.Minute)
	m.grow(60)
	m.with(60, time.Minute)
	if got := law.Limit(); got < 55 {
		t.Errorf("limit %d with 60 in flight at the best latency: %s", got, law.State())
	}
}

func TestPassiveToleratesHeavyNoise(t *testing.T) {
	law, m := watch(100, 50*time.Millisecond)
	m.noise = 0.95
	m.outcome = func(r *rand.Rand, o Outcome) Outcome {
		if r.Float64() < 0.2 {
			return Failed
		}
		return o
	}
	m.with(4, 30*time.Minute).with(60, 2*time.Minute)
	if got := law.State(); !strings.Contains(got, "never saturated") {
		t.Errorf("noise is not saturation: %q", got)
	}
}

// A queue that stands from the start looks like work. The queue was once reported as a confident
// lower bound of the backend's slots.
func TestPassiveSaysThatAQueueThatWasAlwaysThereLooksLikeWork(t *testing.T) {
	law, m := watch(20, 50*time.Millisecond)
	m.with(60, time.Minute)
	const looksLike = ", never clearly less was done, so a queue would look like work"
	if got := law.State(); !strings.HasPrefix(got, "estimate: at most 60, ") || !strings.HasSuffix(got, looksLike) {
		t.Errorf("says %q", got)
	}
	m.with(100, time.Minute)
	if got := law.State(); !strings.HasPrefix(got, "estimate: at most ") || !strings.HasSuffix(got, looksLike) {
		t.Errorf("says %q", got)
	}
	queued := Sample{Start: 0, End: 250 * time.Millisecond}
	if got := law.Within(queued, Load{InFlight: 100}, 20); got < 40*time.Millisecond || got > 60*time.Millisecond {
		t.Errorf("with 20 at once work would take %v, want about 50ms", got)
	}
	m.with(5, time.Minute)
	if got := law.State(); !strings.HasPrefix(got, "estimate: never saturated, at least ") {
		t.Errorf("after a calm minute: %q", got)
	}
	m.with(100, time.Minute)
	if got := law.State(); law.Limit() < 17 || law.Limit() > 23 || !strings.HasPrefix(got, "estimate: about ") {
		t.Errorf("saturated after a calm minute, the estimate is %d: %s", law.Limit(), got)
	}
}

// Timeouts once counted as throughput, as if they had used a slot.
func TestPassiveCountsOnlyWhatWasFinished(t *testing.T) {
	law, m := watch(20, 50*time.Millisecond)
	m.deadline = 200 * time.Millisecond
	m.with(10, time.Minute).with(40, 10*time.Second).with(400, time.Minute)
	if got := law.Limit(); got < 17 || got > 23 {
		t.Errorf("estimates %d for 20 slots: %s", got, law.State())
	}
	if s := law.State(); !strings.Contains(s, "much is lost now") {
		t.Errorf("says %q", s)
	}
}

func TestPassiveSaysThatNothingCanBeKnown(t *testing.T) {
	oneGoroutine(t)
	law, m := watch(20, 50*time.Millisecond)
	m.deadline = 200 * time.Millisecond
	m.with(4000, 20*time.Second)
	if s := law.State(); !law.Unsafe() || !strings.HasSuffix(s, "nothing ended in time as soon as it was saturated") {
		t.Errorf("says %q", s)
	}
}

// One caller at a time makes no queue, however slow the backend becomes.
func TestPassiveTakesNoSlowBackendWithOneCallerForAFullOne(t *testing.T) {
	law, m := watch(4, 5*time.Millisecond)
	m.with(1, 10*time.Second)
	m.service *= 5
	m.with(1, 10*time.Second)
	if law.knee != 0 || law.Unsafe() {
		t.Errorf("says %q", law.State())
	}
}
