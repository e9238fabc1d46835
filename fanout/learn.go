package fanout

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// learner determines whether calls are faster sequentially or in parallel. Its input is measured
// calls, its output a mode. learner reads no clock.
//
// With n branches, a trial of the slower mode can take n times as long as a call in the faster mode.
// So learner tries a mode only where the mode can win. In parallel mode, the sum of the branches'
// times estimates the sequential time. While this sum is far above the wall time, sequential is not
// tried. In sequential mode, parallel can gain at most the sum without the longest branch. While
// this gain is below the last measured cost of starting goroutines, parallel is not tried. In
// between, about one call in fifty tries the other mode, because nothing else shows that a processor
// has become free. If the trial call was faster, two more follow. Then the current mode is measured
// again, because the machine may have been busy for a moment, which makes this mode look slow.
//
// On a busy machine, a goroutine can start late by a thousand times a short call. The loss of a trial
// therefore becomes a debt. A small share of each later call's time pays the debt off, and no trial
// begins before the debt is paid.
//
// In quick parallel calls the caller runs branches too: to put the caller to sleep and wake it
// costs more than its freedom to return early is worth.
type learner struct {
	// Callers read these fields without the lock.
	now   atomic.Uint32 // the mode of the next call
	every atomic.Uint32 // one in every calls is measured: a power of two
	slow  time.Duration // calls that take at least this long are all measured

	mu        sync.Mutex
	parallel  bool // parallel is the current mode
	trying    bool // the other mode is on trial
	checking  bool // the other mode won, and the current mode is measured again
	seq, par  window
	sum, gain window        // sum: of the branches' times, in parallel mode; gain: the largest possible, in sequential mode
	since     int           // calls since the last trial
	debt      time.Duration // loss of parallel trials that is not yet paid off
	over      window        // wall time minus the sum, in parallel mode
	start     time.Duration // lower bound of what starting goroutines costs a call
	settled   time.Duration // usual time of a call in the current mode, at the last decision
	outliers  int           // calls in a row that differ from settled by a factor of two or more
	unclear   bool          // the latest parallel call might have been as quick sequentially
}

// Modes of a call.
const (
	inSequence uint32 = iota
	inParallel
	joined // parallel, and the caller runs branches too
)

const (
	measureEvery   = 16 // one in measureEvery calls is measured; every call when branches are slow
	measureUnclear = 4  // one in measureUnclear calls is measured where the better mode is unclear
	tries          = 3  // calls to judge a mode by
	pause          = 48 // calls between two trials

	// farApart is the ratio of the sum of the branches' times to the wall time above which
	// sequential is not tried. Times measured in parallel exceed sequential times, because of cold
	// caches and shared processors, but not by this factor.
	farApart = 1.5
	better   = 0.98 // the other mode must take less than this share of the current mode's time to replace it
	// payOff is the inverse of the share of the calls' time that trials may lose.
	payOff = 40
	// minStart is the least cost of starting goroutines.
	minStart = 300 * time.Nanosecond
	// Above slowCall, and above slowBranch for each branch, the cost of reading the clock and
	// processing its times is a negligible share of a call.
	slowCall   = 50 * time.Microsecond
	slowBranch = 10 * time.Microsecond
	// joinBelow is the call time below which the caller runs branches too: saving the caller's
	// sleep and wake-up then matters more than its freedom to return early.
	joinBelow = 200 * time.Microsecond
)

// reset prepares for calls of n branches.
func (l *learner) reset(n int) {
	l.parallel, l.start, l.slow = true, minStart, max(slowCall, time.Duration(n)*slowBranch)
	l.since = pause // nothing is known yet: try soon
	l.now.Store(inParallel)
	l.every.Store(1)
}

// choose returns the mode of call n, and whether the call is measured.
func (l *learner) choose(n uint64) (mode uint32, measured bool) {
	return l.now.Load(), l.due(n)
}

func (l *learner) due(n uint64) bool { return n&uint64(l.every.Load()-1) == 0 }

// each returns how many calls one measured call stands for.
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
		l.start = max(minStart, l.over.median())
	} else {
		l.seq.add(wall)
		l.gain.add(sum - longest)
	}
	switch {
	case l.trying && parallel != l.parallel:
		if parallel { // the loss of a sequential trial is bounded by the sum
			l.debt += max(0, wall-l.own().median())
		}
		l.judge()
	case l.checking:
		if parallel == l.parallel && l.own().n >= tries {
			l.decide()
		}
	case !l.trying && parallel == l.parallel:
		l.watch(wall)
		calls := l.each() // including calls not measured
		l.since += calls
		if l.debt > 0 { // paid by the median, so that one slow call does not pay all
			l.debt = max(0, l.debt-l.own().median()*time.Duration(calls)/payOff)
		}
		if l.since < pause || l.own().n < tries || l.debt > 0 {
			break
		}
		if l.trying = l.worthTrying(); l.trying {
			*l.other() = window{}
			break
		}
		if !l.parallel { // in parallel mode, sequential is tried as soon as worthTrying reports true
			l.since = 0
			l.start = max(minStart, l.start/8*7) // lowered, because an unusual call may have raised it
		}
	}
	// Otherwise the call began before the mode changed: one more sample.
	l.publish(wall)
}

// watch detects that the workload has changed since the last decision.
func (l *learner) watch(wall time.Duration) {
	if l.settled > 0 && wall < l.settled*2 && wall > l.settled/2 {
		l.outliers = 0
		return
	}
	if l.outliers++; l.outliers < 3 {
		return
	}
	l.outliers = 0
	l.since, l.start = pause, minStart
	l.seq, l.par, l.sum, l.gain, l.over = window{}, window{}, window{}, window{}, window{}
	l.settled = wall
	l.debt = min(l.debt, wall/2) // paid off soon, to follow the change
}

func (l *learner) worthTrying() bool {
	if l.parallel {
		return float64(l.sum.median()) < farApart*float64(l.par.median())
	}
	return l.gain.median() > l.start
}

// judge compares the trial calls so far with the current mode. A trial ends as soon as it is
// slower.
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

// better reports whether the other mode is faster than the current one.
func (l *learner) better() bool {
	return float64(l.other().median()) < better*float64(l.own().median())
}

// decide ends a trial and sets the current mode.
func (l *learner) decide() {
	own, other := l.own().median(), l.other().median()
	l.trying, l.checking, l.since, l.outliers, l.settled = false, false, 0, 0, own
	if l.better() {
		l.parallel = !l.parallel
		l.settled, l.debt = other, 0
	}
}

// publish sets the mode for callers. During a trial, after odd calls and with few samples, every
// call is measured.
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
	case l.trying || l.outliers > 0 || l.own().n < tries:
		l.pace(wall, 1)
	case l.parallel && (l.unclear || l.worthTrying()):
		l.pace(wall, measureUnclear)
	default:
		l.pace(wall, measureEvery)
	}
}

// joins reports whether the caller runs branches in parallel calls: if recent calls were quick.
func (l *learner) joins() bool {
	usual := l.settled
	if l.own().n >= tries {
		usual = l.own().median()
	}
	return usual > 0 && usual < joinBelow && l.outliers == 0
}

// pace sets which calls are measured from now on: all slow calls, otherwise one in every.
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
	n int // number ever added
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
