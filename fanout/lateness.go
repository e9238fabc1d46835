package fanout

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// lateness predicts whether an optional branch would be late. Its evidence is the outcome of calls
// with about the same remaining time, not how long calls took: a call that may take long is no
// evidence about a quick one. A call's kind is the power of two below its remaining time. Times are
// since the Fanout was made.
type lateness struct {
	until atomic.Int64 // end of the latest evidence; zero: calls need not determine their remaining time

	mu   sync.Mutex
	runs [65]run // by kind
}

// run is the evidence about calls of one kind.
type run struct {
	late     int           // late calls in a row
	until    time.Duration // when the evidence expires
	answered time.Duration // when the latest answer in time came
	ruledOut uint32        // calls that the evidence ruled out, probes included
}

const (
	minLate       = 64              // late calls in a row; unlikely if one call in twenty is in time
	evidenceLasts = 5 * time.Second // least life of the evidence after a late call
	evidenceTimes = 20              // least life of the evidence, in remaining times of the late call
	probeEvery    = 16              // one in probeEvery calls ruled out by the evidence starts anyway

	forever = time.Duration(math.MaxInt64)
)

// watched reports whether calls must determine their remaining time.
func (l *lateness) watched() bool { return l != nil && l.until.Load() != 0 }

// late records a late call; left was its remaining time at the start, zero if not determined.
func (l *lateness) late(now, left time.Duration) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.of(left)
	if now-left < r.answered { // a call of this kind was answered in the meantime
		return
	}
	ends := now + max(evidenceLasts, evidenceTimes*left)
	l.until.Store(max(l.until.Load(), int64(ends)))
	if left == 0 {
		return
	}
	if now >= r.until {
		r.late = 0
	}
	r.late++
	r.until = ends
}

// inTime records a call that was answered in time; left was its remaining time at the start.
func (l *lateness) inTime(now, left time.Duration) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.of(left)
	r.late, r.answered = 0, now
}

// hopeless reports that a call with the remaining time left is not worth starting. One call in
// sixteen starts anyway, at irregular intervals, because calls may come in a pattern.
func (l *lateness) hopeless(now, left time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if int64(now) >= l.until.Load() {
		l.until.Store(0)
	}
	r := l.of(left)
	if r.late < minLate || now >= r.until {
		return false
	}
	r.ruledOut++
	const golden = 0x9e3779b9 // multiples of golden spread over all numbers
	block, place := r.ruledOut/probeEvery, r.ruledOut%probeEvery
	return (block+1)*golden>>28 != place
}

func (l *lateness) of(left time.Duration) *run { return &l.runs[bits.Len64(uint64(left))] }
