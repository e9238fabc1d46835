package gate

import (
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
)

// Waiter is one arrival's place in the queue. The caller owns it and may use it
// again once it has left the queue.
type Waiter struct {
	Owner any // the caller's own, never looked at

	cost, held     int // slots, to start and while it runs
	level          int
	kind           uint8
	probe          bool    // it may try what evidence speaks against
	work           float64 // slots, times how long such work holds them
	since          time.Duration
	deadline       time.Duration
	next, previous *Waiter
	queued         bool
}

// Since is when the waiter arrived.
func (w *Waiter) Since() time.Duration { return w.since }

// Cost is what the waiter asked for.
func (w *Waiter) Cost() int { return w.cost }

// Deadline is when the waiter's caller leaves, or Never.
func (w *Waiter) Deadline() time.Duration { return w.deadline }

// queue is first come first served, and anybody can leave.
type queue struct {
	first, last *Waiter
	n           int     // waiters
	work        float64 // of all of them
	unknown     float64 // slots of those that came before anything was known of such work
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
		q.work = 0 // not what rounding has left of it
	}
}

// Leave takes a waiter whose caller has left out of the queue. It returns false
// if the waiter was granted or dropped before; then the caller must take up or
// Revoke what it was granted.
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

// Expire is Leave for a waiter that waited as long as it was allowed to.
func (g *Gate) Expire(w *Waiter) bool {
	if !w.queued {
		return false
	}
	g.take(w)
	g.ledger[w.level].rejected[spillway.WaitTooLong]++
	g.demand.turned++
	return true
}

// CloseIntake refuses every later arrival with reason. Waiters stay: drain them
// with Next, or Drop them. Closed is final; Draining may still become Closed.
func (g *Gate) CloseIntake(reason spillway.Reason) {
	if g.closed != spillway.Closed {
		g.closed = reason
	}
}

// ClosedFor is why the intake is closed; zero while it is open.
func (g *Gate) ClosedFor() spillway.Reason { return g.closed }

// Drop takes the next waiter out as rejected, with the reason for which the
// intake is closed; nil means that nothing waits.
func (g *Gate) Drop() *Waiter {
	w := g.next(g.floor.at)
	if w != nil {
		g.take(w)
		g.ledger[w.level].rejected[g.closed]++
	}
	return w
}

// Still is for how long nothing has ended although work has run since oldest; zero
// while that is nothing unusual.
func (g *Gate) Still(now, oldest time.Duration) time.Duration {
	d := now - max(g.service.last, oldest)
	if d < time.Second || float64(d) < 3*g.service.kinds.longest() {
		return 0
	}
	return d
}

// Lost is the share of the work that ended of late, and ran into its deadline, was given
// up by its caller or was refused by what is behind; zero while that is not most of it.
func (g *Gate) Lost(now time.Duration) float64 {
	s := &g.service
	lasts := max(evidenceLasts, time.Duration(lostMeans*s.mean))
	if s.lost.n < lostKnown || s.lost.mean < mostInVain || now-s.last > lasts {
		return 0
	}
	return s.lost.mean
}

// Unsaid is how many ends in a row, the latest included, taught the law nothing, and
// whether most of them failed; zero while they are few.
func (g *Gate) Unsaid() (n int, failed bool) {
	s := &g.service
	if s.unsaid < serviceSpan {
		return 0, false
	}
	return s.unsaid, 2*s.failed > s.unsaid
}

// Histograms returns copies of the queue waits of all admitted work and of the
// time it then took, in nanoseconds.
func (g *Gate) Histograms() (queueWait, service *histogram.Histogram) {
	queueWait = g.waits.Clone()
	queueWait.RecordN(0, g.unqueued)
	return queueWait, g.times.Clone()
}
