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
// longest branch: while that is less than it costs to start goroutines, parallel
// is not tried; otherwise a trial costs no more than starting them. Between,
// both are measured, the better median rules, and as long as it stays the same
// one the trials become rarer.
type learner struct {
	// What callers read without the lock.
	now   atomic.Uint32 // the mode of the next call: inParallel or not
	every atomic.Uint32 // which sequential calls are measured

	mu        sync.Mutex
	parallel  bool // what rules
	trying    bool // the other mode is on trial
	seq, par  window
	sum, gain window // of the branches' times in parallel mode; of what can be won, in sequential mode
	since     int    // measured calls since the last trial
	pause     int    // how many there are between two
	settled   time.Duration
	odd       int // calls in a row unlike those that the choice was made on
}

const (
	inParallel   = 1
	measureEvery = 16  // one sequential call of so many is measured; each, when branches are slow
	tries        = 5   // calls to judge a mode by
	firstPause   = 16  // measured calls until a trial is repeated
	longestPause = 512 // and at most

	// farApart is where the sum of the branches' times ends the question. Times
	// taken in parallel are longer than in sequence, by cold caches and shared
	// processors, but not by so much.
	farApart = 1.5
	better   = 0.98 // what the other mode must reach to replace the one that rules
	// leastGain is what starting goroutines costs at the very least.
	leastGain = 300 * time.Nanosecond
	// slowCall is from where a few readings of the clock do not matter.
	slowCall = 50 * time.Microsecond
)

func (l *learner) reset() {
	l.parallel, l.pause = true, firstPause
	l.now.Store(inParallel)
	l.every.Store(1)
}

// choose returns the mode of call n, and whether it is to be measured. A call in
// parallel always is.
func (l *learner) choose(n uint64) (parallel, measured bool) {
	if l.now.Load() == inParallel {
		return true, true
	}
	return false, n%uint64(l.every.Load()) == 0
}

// learn takes one measured call: its wall time, the sum of its branches' times,
// and the longest of them.
func (l *learner) learn(parallel bool, wall, sum, longest time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if parallel {
		l.par.add(wall)
		l.sum.add(sum)
	} else {
		l.seq.add(wall)
		l.gain.add(sum - longest)
	}
	switch {
	case l.trying && parallel != l.parallel:
		if l.other().n >= tries {
			l.conclude()
		}
	case !l.trying && parallel == l.parallel:
		l.watch(wall)
		if l.since++; l.since >= l.pause && l.own().n >= tries && l.worthTrying() {
			l.try()
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
	l.pause, l.since = firstPause, firstPause
	l.seq, l.par, l.sum, l.gain = window{}, window{}, window{}, window{}
	l.settled = wall
}

func (l *learner) worthTrying() bool {
	if l.parallel {
		return float64(l.sum.median()) < farApart*float64(l.par.median())
	}
	return l.gain.median() > leastGain
}

func (l *learner) try() {
	l.trying = true
	*l.other() = window{}
}

func (l *learner) conclude() {
	own, other := l.own().median(), l.other().median()
	l.trying, l.since, l.odd = false, 0, 0
	l.settled = own
	if float64(other) < better*float64(own) {
		l.parallel = !l.parallel
		l.settled = other
		l.pause = firstPause
		return
	}
	l.pause = min(2*l.pause, longestPause)
}

// publish tells the callers. Sequential calls are measured each while something
// is being found out.
func (l *learner) publish(wall time.Duration) {
	mode, every := uint32(0), uint32(measureEvery)
	if l.parallel != l.trying {
		mode = inParallel
	}
	if l.trying || l.odd > 0 || wall >= slowCall || l.own().n < tries {
		every = 1
	}
	if l.now.Load() != mode {
		l.now.Store(mode)
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
	d [9]time.Duration
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
