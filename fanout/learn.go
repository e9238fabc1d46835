package fanout

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// learner finds out whether a workload is faster sequentially or in parallel.
// Calls go in, a mode comes out; it reads no clock.
//
// Trying the slower mode can cost n times the call, so it is tried only where it
// can win. In parallel mode the branches' own times tell what they would take
// one after the other: while their sum is far above the wall time, sequential is
// not tried. In sequential mode, what can be won at most is the sum without the
// longest branch: while that is less than starting goroutines cost the last time,
// parallel is not tried; otherwise a try costs no more than that. Between, one
// call in about fifty tries the other mode, because a processor that has become
// free shows in nothing else. If it did better, two more follow, and then
// the mode that rules answers for itself again: a machine that was busy for a
// moment made it look bad. What trials lose
// is paid off, by a small share of each call, before the next one: on a busy
// machine, a goroutine can be late by a thousand times a short call.
//
// In quick calls in parallel the caller takes part: to put it to sleep and wake it
// costs more than its freedom to return early is worth.
type learner struct {
	// What callers read without the lock.
	now   atomic.Uint32 // the mode of the next call
	every atomic.Uint32 // which calls are measured: a power of two
	slow  time.Duration // from where a call is measured each time

	mu        sync.Mutex
	parallel  bool // what rules
	trying    bool // the other mode is on trial
	checking  bool // it won, and the mode that rules is measured again
	seq, par  window
	sum, gain window        // of the branches' times in parallel mode; of what can be won, in sequential mode
	since     int           // calls since the last trial
	debt      time.Duration // what trials of parallel have lost, and is not yet paid off
	over      window        // wall time beyond the sum, in parallel mode
	start     time.Duration // at least what starting goroutines costs a call
	settled   time.Duration // a call in the mode that rules, when that was decided
	odd       int           // calls in a row unlike those that the choice was made on
	unclear   bool          // the latest call in parallel might have been as quick in sequence
}

// Modes of a call.
const (
	inSequence uint32 = iota
	inParallel
	joined // in parallel, and the caller takes part
)

const (
	measureEvery = 16 // one call of so many is measured; each, when branches are slow
	closeLook    = 4  // or one of so many, where it is not clear which mode is better
	tries        = 3  // calls to judge a mode by
	pause        = 48 // calls between two trials

	// farApart is where the sum of the branches' times ends the question. Times
	// taken in parallel are longer than in sequence, by cold caches and shared
	// processors, but not by so much.
	farApart = 1.5
	better   = 0.98 // what the other mode must reach to replace the one that rules
	// payOff is the share of the time of calls that trials may lose: one in so many.
	payOff = 40
	// leastStart is what starting goroutines costs at the very least.
	leastStart = 300 * time.Nanosecond
	// slowCall and slowBranch, for each branch, are from where the readings of the
	// clock and what is done with them do not matter.
	slowCall   = 50 * time.Microsecond
	slowBranch = 10 * time.Microsecond
	// joinBelow is what calls take that the caller joins: then it counts that it
	// need not be put to sleep and woken, and not that it is free to return early.
	joinBelow = 200 * time.Microsecond
)

// reset prepares for calls of n branches.
func (l *learner) reset(n int) {
	l.parallel, l.start, l.slow = true, leastStart, max(slowCall, time.Duration(n)*slowBranch)
	l.since = pause // nothing is known yet: try soon
	l.now.Store(inParallel)
	l.every.Store(1)
}

// choose returns the mode of call n, and whether it is to be measured.
func (l *learner) choose(n uint64) (mode uint32, measured bool) {
	return l.now.Load(), l.due(n)
}

func (l *learner) due(n uint64) bool { return n&uint64(l.every.Load()-1) == 0 }

// each is for how many calls one is measured.
func (l *learner) each() int { return int(l.every.Load()) }

// learn takes one measured call: its wall time, the sum of its branches' times,
// and the longest of them.
func (l *learner) learn(parallel bool, wall, sum, longest time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if parallel {
		l.par.add(wall)
		l.sum.add(sum)
		l.over.add(wall - sum)
		l.unclear = float64(sum) < farApart*float64(wall)
		l.start = max(leastStart, l.over.median())
	} else {
		l.seq.add(wall)
		l.gain.add(sum - longest)
	}
	switch {
	case l.trying && parallel != l.parallel:
		if parallel { // what a sequential one loses is bounded by the sum
			l.debt += max(0, wall-l.own().median())
		}
		l.judge()
	case l.checking:
		if parallel == l.parallel && l.own().n >= tries {
			l.decide()
		}
	case !l.trying && parallel == l.parallel:
		l.watch(wall)
		calls := l.each() // with those that were not measured
		l.since += calls
		if l.debt > 0 { // by the median: one slow call does not pay it all
			l.debt = max(0, l.debt-l.own().median()*time.Duration(calls)/payOff)
		}
		if l.since < pause || l.own().n < tries || l.debt > 0 {
			break
		}
		if l.trying = l.worthTrying(); l.trying {
			*l.other() = window{}
			break
		}
		if !l.parallel { // otherwise it is tried as soon as it is worth it
			l.since = 0
			l.start = max(leastStart, l.start/8*7) // it may have been an odd call
		}
	}
	// Otherwise the call began before the mode changed: one more sample.
	l.publish(wall)
}

// watch notices that the workload is no longer the one that was judged.
func (l *learner) watch(wall time.Duration) {
	if l.settled > 0 && wall < l.settled*2 && wall > l.settled/2 {
		l.odd = 0
		return
	}
	if l.odd++; l.odd < 3 {
		return
	}
	l.odd = 0
	l.since, l.start = pause, leastStart
	l.seq, l.par, l.sum, l.gain, l.over = window{}, window{}, window{}, window{}, window{}
	l.settled = wall
	l.debt = min(l.debt, wall/2) // soon paid: the change has to be followed
}

func (l *learner) worthTrying() bool {
	if l.parallel {
		return float64(l.sum.median()) < farApart*float64(l.par.median())
	}
	return l.gain.median() > l.start
}

// judge looks at the calls on trial so far. As soon as they do worse, it ends.
func (l *learner) judge() {
	switch worse := l.other().median() > l.own().median(); {
	case !worse && l.other().n < tries:
	case l.better():
		l.trying, l.checking = false, true
		*l.own() = window{}
	default:
		l.decide()
	}
}

// better reports whether the mode that does not rule does better.
func (l *learner) better() bool {
	return float64(l.other().median()) < better*float64(l.own().median())
}

// decide ends a trial.
func (l *learner) decide() {
	own, other := l.own().median(), l.other().median()
	l.trying, l.checking, l.since, l.odd, l.settled = false, false, 0, 0, own
	if l.better() {
		l.parallel = !l.parallel
		l.settled, l.debt = other, 0
	}
}

// publish tells the callers. Each call is measured while something is being found
// out.
func (l *learner) publish(wall time.Duration) {
	mode := inSequence
	if l.parallel != l.trying {
		mode = inParallel
		if l.joins() {
			mode = joined
		}
	}
	if l.now.Load() != mode {
		l.now.Store(mode)
	}
	switch {
	case l.trying || l.odd > 0 || l.own().n < tries:
		l.pace(wall, 1)
	case l.parallel && (l.unclear || l.worthTrying()):
		l.pace(wall, closeLook)
	default:
		l.pace(wall, measureEvery)
	}
}

// joins reports whether the caller takes part in calls in parallel: if those of
// late were quick.
func (l *learner) joins() bool {
	usual := l.settled
	if l.own().n >= tries {
		usual = l.own().median()
	}
	return usual > 0 && usual < joinBelow && l.odd == 0
}

// pace says which calls are measured from now on: each, if they are slow, or one
// of so many.
func (l *learner) pace(wall time.Duration, every uint32) {
	if wall >= l.slow {
		every = 1
	}
	if l.every.Load() != every {
		l.every.Store(every)
	}
}

func (l *learner) own() *window {
	if l.parallel {
		return &l.par
	}
	return &l.seq
}

func (l *learner) other() *window {
	if l.parallel {
		return &l.seq
	}
	return &l.par
}

// window holds the latest times.
type window struct {
	d [5]time.Duration
	n int // ever added
}

func (w *window) add(d time.Duration) {
	w.d[w.n%len(w.d)] = d
	w.n++
}

func (w *window) median() time.Duration {
	d := w.d
	kept := d[:min(w.n, len(d))]
	if len(kept) == 0 {
		return 0
	}
	slices.Sort(kept)
	return kept[len(kept)/2]
}
