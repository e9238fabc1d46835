package gate

import (
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
)

// Waiter is the place of one arrival in the queue. The caller owns the Waiter and may reuse it once
// it has left the queue.
type Waiter struct {
	Owner any // for the caller; the gate never reads it

	cost, held     int // slots to start, and slots held while running
	level          int
	kind           uint8
	probe          bool    // waits although its predicted wait was too long
	work           float64 // slots times the expected time for which they are held; zero: unknown
	since          time.Duration
	deadline       time.Duration
	next, previous *Waiter
	queued         bool
}

// Since is when the waiter arrived.
func (w *Waiter) Since() time.Duration { return w.since }

// Late is the reason for a waiter that Next drops.
func (w *Waiter) Late() spillway.Reason {
	if w.deadline == Never {
		return spillway.ReasonWaitTooLong
	}
	return spillway.ReasonDeadlineTooClose
}

// queue is first come, first served; any waiter can leave.
type queue struct {
	first, last *Waiter
	n           int     // waiters
	work        float64 // work of all waiters
	unknown     float64 // slots of waiters whose work is unknown
}

func (q *queue) push(w *Waiter) {
	w.previous, w.next, w.queued = q.last, nil, true
	if q.last == nil {
		q.first = w
	} else {
		q.last.next = w
	}
	q.last = w
	q.n++
	q.work += w.work
	if w.work == 0 {
		q.unknown += float64(w.held)
	}
}

func (q *queue) remove(w *Waiter) {
	if w.previous == nil {
		q.first = w.next
	} else {
		w.previous.next = w.next
	}
	if w.next == nil {
		q.last = w.previous
	} else {
		w.next.previous = w.previous
	}
	w.next, w.previous, w.queued = nil, nil, false
	q.n--
	q.work -= w.work
	if w.work == 0 {
		q.unknown -= float64(w.held)
	}
	if q.n == 0 {
		q.work = 0 // clears rounding errors
	}
}

// Leave takes a waiter out of the queue after its caller has left. It returns false if the waiter was
// granted or dropped before. The caller must then answer a grant with Taken or Revoke.
func (g *Gate) Leave(now time.Duration, w *Waiter) bool {
	if !w.queued {
		return false
	}
	g.take(w)
	if w.deadline == Never {
		g.service.kinds.list[w.kind].stay.leave(float64(now - w.since))
	}
	g.ledger[w.level].cancelled++
	g.demand.lost++
	return true
}

// Expire is Leave for a waiter that has waited for the longest time allowed.
func (g *Gate) Expire(w *Waiter) bool {
	if !w.queued {
		return false
	}
	g.take(w)
	g.refuse(w.level, spillway.ReasonWaitTooLong, 1, 0)
	g.rejectedOf(w.kind, 1)
	return true
}

// CloseIntake refuses every later arrival with reason. Waiters stay: drain them
// with Next, or Drop them. Closed is final; Draining may still become Closed.
func (g *Gate) CloseIntake(reason spillway.Reason) {
	if g.closed != spillway.ReasonClosed {
		g.closed = reason
	}
}

// ClosedFor is why the intake is closed; zero while it is open.
func (g *Gate) ClosedFor() spillway.Reason { return g.closed }

// Drop removes the next waiter as rejected, with the reason for which the intake is closed. It
// returns nil if nothing waits.
func (g *Gate) Drop() *Waiter {
	w := g.next(g.floor.at)
	if w != nil {
		g.take(w)
		g.rejected[w.level][g.closed]++
		g.rejectedOf(w.kind, 1)
	}
	return w
}

// StalledFor is for how long nothing has ended although work has run since oldest; zero while such a
// time is not unusual.
func (g *Gate) StalledFor(now, oldest time.Duration) time.Duration {
	d := now - max(g.service.last, oldest)
	if d < time.Second || float64(d) < 3*g.service.kinds.longest() {
		return 0
	}
	return d
}

// Lost is the share of recently ended work that ran into its deadline, was given up by its caller
// or was refused by the backend; zero unless most work was lost.
func (g *Gate) Lost(now time.Duration) float64 {
	s := &g.service
	lasts := max(evidenceLasts, time.Duration(lostMeans*s.mean))
	if s.lost.n < lostKnown || s.lost.mean < mostInVain || now-s.lossAt > lasts {
		return 0
	}
	return s.lost.mean
}

// RefusedBelow reports whether most of the work that was lost of late was refused further down.
func (g *Gate) RefusedBelow() bool { return g.service.below.mean > 0.5 }

// WithoutSample returns how many consecutive ends, up to the latest, told of no sample for the law, and
// whether most of them failed. n is zero while such ends are few.
func (g *Gate) WithoutSample() (n int, failed bool) {
	s := &g.service
	if s.noSample < serviceSpan {
		return 0, false
	}
	return s.noSample, 2*s.failed > s.noSample
}

// QueueWait returns the histogram of queue waits of all admitted work, in nanoseconds.
func (g *Gate) QueueWait() *histogram.Histogram {
	waits := g.waits.Clone()
	waits.RecordN(0, g.unqueued)
	return waits
}
