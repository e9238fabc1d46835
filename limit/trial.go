package limit

import "math"

// trial is a change of the limit that is being looked at: did latency follow
// concurrency?
type trial struct {
	from, to  float64 // limits, or what ran if that was less
	restore   float64 // the limit before
	inFlight  float64 // mean, before the change
	before    mean    // latency
	ran       mean    // in flight since
	after     mean    // latency since
	cohorts   int
	suspicion bool    // a cut made because latency rose, not on schedule
	lost      float64 // share of the work, before
}

// verdict is what a trial says.
type verdict uint8

const (
	undecided   verdict = iota
	untested            // what ran did not follow the limit
	follows             // latency followed what ran: the difference was waiting
	independent         // it did not
)

// test says when the latency of a trial counts as following concurrency. All is in
// logarithms, so that the share is an elasticity: at 1 throughput does not change, at
// 0 latency does not.
type test struct {
	share        float64 // latency follows if it moves by more than this share of concurrency,
	follows      float64 // by so many standard errors,
	independent  float64 // and does not if it moves less, by so many,
	followsAtEnd float64 // or, after the last cohort, does if by so many.
	visible      float64 // it has moved at all if by so many
	cohorts      int     // until a trial is decided anyway
}

// Going up, doubt speaks against the raise, but a trend is enough. Going down, the
// cut must show: capacity given away for nothing is lost until a raise finds it again.
const (
	raiseFollows, raiseIndependent = 0.6, 1.0
	cutDecides, cutFollows         = 1.5, 0.7
	cutVisible                     = 2.0
	raiseCohorts, cutCohorts       = 2, 3
	// If in flight moved by less than that share of the limit's change, the trial did
	// not take place: the load is gone, or another limit is enforced.
	leastMoved = 0.3
)

func (a *aim) raiseTest() test {
	return test{share: a.raiseShare, follows: raiseFollows, independent: raiseIndependent, cohorts: raiseCohorts}
}

func (a *aim) cutTest() test {
	return test{share: a.cutShare, follows: cutDecides, independent: cutDecides, followsAtEnd: cutFollows, visible: cutVisible, cohorts: cutCohorts}
}

// enter takes the reading of a cohort that ran under the trial's limit.
func (t *trial) enter(r reading) {
	t.cohorts++
	t.after.add(r.level, r.n, math.Inf(1))
	t.ran.add(r.inFlight, r.n, math.Inf(1))
}

// changed is by how much concurrency and latency moved, both counted in the
// direction of the limit.
func (t *trial) changed() (concurrency, latency float64) {
	concurrency, latency = math.Log(t.ran.level/t.inFlight), t.after.level-t.before.level
	if t.to < t.from {
		return -concurrency, -latency
	}
	return concurrency, latency
}

// judge says what the trial has shown so far; err is the standard error of the
// change of latency. margin is by how much, in the test's favour of follows.
func (t *trial) judge(by test, err float64) (v verdict, margin float64) {
	concurrency, latency := t.changed()
	if t.to == t.from || concurrency < leastMoved*math.Abs(math.Log(t.to/t.from)) {
		return untested, 0
	}
	margin = latency - by.share*concurrency
	last := t.cohorts >= by.cohorts
	need := by.follows
	if last {
		need = by.followsAtEnd
	}
	switch {
	case margin > need*err && latency > by.visible*err:
		return follows, margin
	case margin < -by.independent*err, last:
		return independent, margin
	}
	return undecided, margin
}
