package limit

import "math"

// trial is a change of the limit that is being looked at: did latency follow
// concurrency?
type trial struct {
	from, to  float64 // limits, or what ran if that was less
	restore   float64 // the limit before
	inFlight  float64 // mean, before the change
	before    mean    // latency
	paced     pace    // before the change
	ran       mean    // in flight since
	after     mean    // latency since
	cohorts   int
	longer    float64 // latency by the pace, if that decided, in the direction of the limit
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
	cohorts      int     // until a trial is decided anyway, unless the pace says to wait: see judge
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
	// While the pace is not known a trial is not judged by fewer times than that, unless
	// latency clearly followed: with a few slots they are too short to show a queue. One
	// that a rise of latency began has no time to lose.
	fewTimes = 16
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
		concurrency, latency = -concurrency, -latency
	}
	if t.longer > 0 {
		latency = t.longer
	}
	return concurrency, latency
}

// judge says what the trial has shown so far, given the standard error err of the change
// of latency, the pace since, and the spread of one time by the pace. margin is by how
// much latency moved beyond the test's share of concurrency; below zero, it did not follow.
//
// A trial that the pace contradicts is not over with its last cohort: a raise is refused
// then, a cut goes on, up to paceCohorts times as long.
func (t *trial) judge(by test, err float64, since *pace, spread float64) (v verdict, margin float64) {
	t.longer = 0
	concurrency, latency := t.changed()
	if t.to == t.from || concurrency < leastMoved*math.Abs(math.Log(t.to/t.from)) {
		return untested, 0
	}
	longer, doubt := since.against(&t.paced, spread)
	if t.to < t.from {
		longer = -longer
	}
	over, up := longer-by.share*concurrency, t.to > t.from
	last, final := t.cohorts >= by.cohorts, t.cohorts >= paceCohorts*by.cohorts
	need, decides := by.follows, paceDecides
	if last {
		need = by.followsAtEnd
	}
	if final {
		decides = by.followsAtEnd
	}
	if doubt > 0 && over > decides*doubt && longer > paceVisible*doubt {
		t.longer = longer
		return follows, over
	}
	margin = latency - by.share*concurrency
	switch disagrees := doubt > 0 && over > 0 && !final; {
	case margin > need*err && latency > by.visible*err:
		return follows, margin
	case disagrees && last && up: // doubt speaks against a raise
		t.longer = longer
		return follows, 0
	case disagrees, doubt == 0 && t.after.n < fewTimes && !t.suspicion:
	case margin < -by.independent*err, last:
		return independent, margin
	}
	return undecided, margin
}
