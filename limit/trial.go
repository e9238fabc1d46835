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
	filling   bool    // the slots were being filled before: latency was still rising
	bold      bool    // a raise by far, to see what would be answered without a limit
	lost      float64 // share of the work, before
	done      float64 // work done a second, before
	admitted  float64 // pieces of work behind done, as many of one weight as say as much
}

// verdict is what a trial says.
type verdict uint8

const (
	undecided   verdict = iota
	untested            // what ran did not follow the limit
	follows             // latency followed what ran: the difference was waiting
	independent         // it did not
)

// test says when a change of the limit is worth it. All is in logarithms: of what
// concurrency changed by, latency takes one part, and the rest is throughput.
type test struct {
	share       float64 // latency that moved by less than this share of concurrency has not followed,
	worth       float64 // and neither has latency that leaves so much for throughput
	follows     float64 // it follows if it moved by more, by so many standard errors,
	independent float64 // and does not if it moved less, by so many
	visible     float64 // it has moved at all if by so many
	cohorts     int     // until a trial is decided anyway,
	atMost      int     // unless it is about throughput alone
	proof       bool    // doubt speaks against the change
}

// bound is how much latency may move with concurrency.
func (t *test) bound(concurrency float64) float64 {
	return max(t.share*concurrency, concurrency-t.worth)
}

const (
	worthMore     = 0.03 // of throughput
	worthFarMore  = 0.05 // the same, of a raise by far
	worthAnything = 1    // the share alone decides
	// If in flight moved by less than that share of the limit's change, the trial did
	// not take place: the load is gone, or another limit is enforced.
	leastMoved = 0.3
	// While the pace is not known a trial is not judged by fewer times than that, unless
	// latency clearly followed: with a few slots they are too short to show a queue. One
	// that a rise of latency began has no time to lose.
	fewTimes = 16
)

// A raise is kept where latency hardly follows it, or where clearly more is answered.
// One by far has to show it.
func (a *aim) raiseTest(bold bool) test {
	t := test{share: a.raiseShare, worth: worthMore, follows: 1, independent: 1, cohorts: 2, atMost: 6}
	if bold {
		t.worth, t.proof = worthFarMore, true
	}
	return t
}

// A cut is kept if latency follows it so far that hardly less is answered. A cut that a
// rise of latency began may cost more: a raise finds again what it gave away for nothing.
// Where latency was still rising before the cut, what the cut costs is not known.
func (a *aim) cutTest(suspicion, filling bool) test {
	t := test{share: a.cutShare, worth: worthMore, follows: 1.5, independent: 1.5, visible: 2, cohorts: 3, atMost: 6}
	switch {
	case filling:
		t.worth = worthAnything
	case suspicion:
		t.worth = worthFarMore
	}
	return t
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

// followed reports whether latency moved by more than a third of concurrency.
func (t *trial) followed() bool {
	concurrency, latency := t.changed()
	return 3*latency > concurrency
}

// judge says what the trial has shown so far, given the standard error err of the change
// of latency, the pace since, and the spread of one time by the pace. margin is by how
// much latency moved beyond what it may; below zero, it did not follow.
//
// Latency and pace have to agree, where the pace is known. A cut that the pace acquits is undone
// at once. Any other trial of which the two say different things goes on, up to paceCohorts times
// as long; then the raise is refused, and the cut undone. So does a cut while the pace was known
// before and is not yet known since; then latency decides.
func (t *trial) judge(by test, err float64, since *pace, spread float64) (v verdict, margin float64) {
	t.longer = 0
	concurrency, latency := t.changed()
	if t.to == t.from || concurrency < leastMoved*math.Abs(math.Log(t.to/t.from)) {
		return untested, 0
	}
	up, bound := t.to > t.from, by.bound(concurrency)
	longer, doubt := since.against(&t.paced, spread)
	if !up {
		longer = -longer
	}
	margin = latency - bound
	over := longer - bound
	if latency < by.share*concurrency { // the fastest see no queue: is there none?
		over = longer - by.share*concurrency
	}
	if doubt > 0 && over > paceDecides*doubt && longer > paceVisible*doubt {
		t.longer = longer
		return follows, over
	}
	last, final := t.cohorts >= by.cohorts, t.cohorts >= paceCohorts*by.cohorts
	if latency > by.share*concurrency && math.Abs(margin) < 2*by.worth { // what is left for throughput has to be known well
		last = t.cohorts >= by.atMost
	}
	disagrees := doubt > 0 && over > 0
	acquits := doubt > 0 && over < -paceDecides*doubt
	switch {
	case margin > by.follows*err && latency > by.visible*err:
		switch {
		case acquits && !up:
			return independent, margin
		case (acquits || doubt == 0 && !up && t.paced.known()) && !final:
			return undecided, margin
		}
		return follows, margin
	case margin < -by.independent*err && disagrees && !final && (!up || !last):
		return undecided, margin
	case margin < -by.independent*err && disagrees && up:
		t.longer = longer
		return follows, 0
	case margin >= -by.independent*err && !last:
		return undecided, margin
	case margin >= -by.independent*err && up && (margin > 0 || by.proof || latency > by.share*concurrency): // not clearly more is answered
		return follows, margin
	case margin >= -by.independent*err && !up && margin > 0.7*err && latency > by.visible*err:
		return follows, margin
	case doubt == 0 && t.after.n < fewTimes && !t.suspicion:
		return undecided, margin
	}
	return independent, margin
}
