package fanout

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// lateness says when an optional branch would start in vain. Its evidence is what
// became of calls that had about as much time, and not how long calls took: one that
// may take long says nothing of a quick one. A call's kind is the power of two below
// the time that it has. Times are since the Fanout was made.
type lateness struct {
	until atomic.Int64 // when the latest evidence ends; zero: no call looks how much time it has

	mu   sync.Mutex
	runs [65]run // by kind
}

// run is what is known of calls of one kind.
type run struct {
	late   int           // how many in a row
	until  time.Duration // when that is no evidence any more
	made   time.Duration // when the latest answer came
	judged uint32        // how many calls the evidence has spoken against
}

const (
	enoughLate    = 64              // in a row: hardly one in twenty is in time
	evidenceLasts = 5 * time.Second // or evidenceTimes what calls had, if that is more
	evidenceTimes = 20
	probeEvery    = 16 // of the calls that evidence speaks against, one in so many tries

	forever = time.Duration(math.MaxInt64)
)

// watched reports whether it is worth looking how much time a call has.
func (l *lateness) watched() bool { return l != nil && l.until.Load() != 0 }

// late takes a call that was late after it had so much time; zero: nobody had looked.
func (l *lateness) late(now, left time.Duration) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.of(left)
	if now-left < r.made { // one like it was answered meanwhile
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

// made takes a call that was answered and had so much time.
func (l *lateness) made(now, left time.Duration) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.of(left)
	r.late, r.made = 0, now
}

// hopeless reports that a call with so much time is not worth starting. One in sixteen
// tries all the same, at no fixed distance from the one before: calls may come in a
// pattern.
func (l *lateness) hopeless(now, left time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if int64(now) >= l.until.Load() {
		l.until.Store(0)
	}
	r := l.of(left)
	if r.late < enoughLate || now >= r.until {
		return false
	}
	r.judged++
	const golden = 0x9e3779b9 // its multiples are spread over all numbers
	block, place := r.judged/probeEvery, r.judged%probeEvery
	return (block+1)*golden>>28 != place
}

func (l *lateness) of(left time.Duration) *run { return &l.runs[bits.Len64(uint64(left))] }
