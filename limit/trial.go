package limit

import "math"

// trial is a change of the limit under test: did latency follow concurrency? Before means under the
// limit that the trial replaced, after means since the change.
type trial struct {
	from, to   float64 // old and new limit; for a cut, from is the slots in use if fewer
	restore    float64 // the old limit, which an undone cut restores
	ranBefore  float64 // mean slots in use before
	ranAfter   mean    // slots in use after
	before     mean    // latency before
	after      mean    // latency after
	paceBefore pace
	cohorts    int     // cohorts that were read after the change
	longer     float64 // change of latency by the pace, in the direction of the limit; 0 unless the pace decided
	short      bool    // all work has taken little time, before and after: see adaptive.short
	suspicion  bool    // a cut because latency rose, not a scheduled cut
	lost       float64 // only of shedding: share of the work lost before
	done       float64 // only of shedding: work done per second before
	doneSize   float64 // only of shedding: effective sample size of done
}

// trialResult is the result of a trial.
type trialResult uint8

const (
	undecided   trialResult = iota
	untested                // the slots in use did not follow the limit
	follows                 // latency followed the slots in use: the difference was waiting
	independent             // latency did not follow the slots in use
)

// criteria define when a change of the limit is worth keeping. Changes are of logarithms: concurrency
// changes by the sum of the changes of latency and throughput.
type criteria struct {
	share        float64 // latency did not follow if it moved by less than this share of concurrency
	worth        float64 // latency did not follow if throughput moved by more than this
	sureFollowed float64 // standard errors above bound from which latency followed
	sureDidNot   float64 // standard errors below bound from which latency did not follow
	visible      float64 // standard errors from which latency moved at all
	cohorts      int     // cohorts after which a trial is decided even in doubt
	atMost       int     // cohorts until the decision, if a small change of throughput decides
}

// bound is the largest change of latency at which latency did not follow concurrency.
func (t *criteria) bound(concurrency float64) float64 {
	return max(t.share*concurrency, concurrency-t.worth)
}

const (
	worthMore    = 0.03 // change of throughput
	worthFarMore = 0.05 // change of throughput, for a cut because latency rose
	// leastMoved is the share of the limit's change by which the slots in use must move.
	// Otherwise the trial tested nothing: the load is gone, or another limit is enforced.
	leastMoved = 0.3
	// fewTimes is how many times a trial needs, unless latency followed: with few slots, a shorter
	// trial shows no queue. A cut because latency rose is urgent and needs no such number.
	fewTimes = 16
	// throughputAlone is the share of criteria in which only throughput counts: latency followed if it
	// moved by more than concurrency.
	throughputAlone = 1
)

// criteriaOf returns the criteria of t.
//
// A raise is kept if latency hardly followed or throughput clearly grew.
//
// A cut is kept if throughput hardly fell. A cut because latency rose may cost more, since a later
// raise recovers the loss.
//
// If all work is short, throughput alone decides.
func (a *aim) criteriaOf(t *trial) criteria {
	by := criteria{share: a.raiseShare, worth: worthMore, sureFollowed: 1.5, sureDidNot: 1.5, visible: 2, cohorts: 3, atMost: 6}
	if t.to > t.from {
		by.sureFollowed, by.sureDidNot, by.visible, by.cohorts = 1, 1, 0, 2
	}
	if t.suspicion {
		by.worth = worthFarMore
	}
	if t.short {
		by.share = throughputAlone
	}
	return by
}

// enter adds the reading of a cohort that ran under the trial's limit.
func (t *trial) enter(r reading, short bool) {
	t.cohorts++
	t.short = t.short && short
	t.after.add(r.logTime, r.n, math.Inf(1))
	t.ranAfter.add(r.inFlight, r.n, math.Inf(1))
}

// changed returns the changes of concurrency and latency, as logarithms. Changes in the
// direction of the limit are positive.
func (t *trial) changed() (concurrency, latency float64) {
	concurrency, latency = math.Log(t.ranAfter.value/t.ranBefore), t.after.value-t.before.value
	if t.to < t.from {
		concurrency, latency = -concurrency, -latency
	}
	if t.longer > 0 {
		latency = t.longer
	}
	return concurrency, latency
}

// followed reports whether latency moved by more than a third of the change of concurrency.
func (t *trial) followed() bool {
	concurrency, latency := t.changed()
	return 3*latency > concurrency
}

// judge returns the result so far. err is the standard error of the change of latency. since is
// the pace under the new limit. spread is the spread of one time by the pace. margin is the change
// of latency beyond the bound; if negative, latency did not follow.
//
// The fastest four in five may miss a queue. So a pace that clearly followed decides at once, and a raise
// is refused if a known pace is beyond the bound at all.
func (t *trial) judge(by criteria, err float64, since *pace, spread float64) (v trialResult, margin float64) {
	t.longer = 0
	concurrency, latency := t.changed()
	if t.to == t.from || concurrency < leastMoved*math.Abs(math.Log(t.to/t.from)) {
		return untested, 0
	}
	longer, paceErr := since.compareWith(&t.paceBefore, spread)
	if t.to < t.from {
		longer = -longer
	}
	beyond := longer - by.bound(concurrency)
	v, margin = t.byLatency(by, concurrency, latency, err)
	switch {
	case paceErr == 0:
	case beyond > paceDecides*paceErr && longer > paceVisible*paceErr:
		t.longer = longer
		return follows, beyond
	case v == independent && t.to > t.from && beyond > 0:
		t.longer = longer
		return follows, 0
	}
	return v, margin
}

// byLatency is judge by the latency of the fastest four in five.
func (t *trial) byLatency(by criteria, concurrency, latency, err float64) (v trialResult, margin float64) {
	margin = latency - by.bound(concurrency)
	rising, inDoubt := t.to > t.from, margin >= -by.sureDidNot*err
	last := by.cohorts
	if latency > by.share*concurrency && math.Abs(margin) < 2*by.worth {
		last = by.atMost // a small change of throughput decides, so more cohorts measure it
	}
	switch {
	case margin > by.sureFollowed*err && latency > by.visible*err:
		return follows, margin
	case inDoubt && t.cohorts < last:
		return undecided, margin
	case inDoubt && rising && (margin > 0 || latency > by.share*concurrency): // throughput did not clearly grow
		return follows, margin
	case inDoubt && !rising && margin > 0.7*err && latency > by.visible*err:
		return follows, margin
	case t.after.n < fewTimes && !t.suspicion:
		return undecided, margin
	}
	return independent, margin
}
