// Package gate is the limiter's decision core: arrivals and ends go in with
// their times, decisions come out. It is pure: no clock, no lock, no goroutine.
// The limiter holds one under a mutex; a simulator may drive one in virtual
// time and gets the same decisions.
package gate

import (
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/internal/rate"
	"github.com/spillway-go/spillway/limit"
)

// Verdict is what becomes of an arrival.
type Verdict uint8

const (
	Admit  Verdict = iota
	Wait           // queued; Next grants it, or Leave takes it out
	Reject         // Decision.Reason says why
)

// Decision is the answer to an arrival.
type Decision struct {
	Verdict Verdict
	Reason  spillway.Reason // with Reject
}

// Waiter is one arrival's place in the queue. The caller owns it and may use it
// again once it has left the queue.
type Waiter struct {
	Owner any // the caller's own, never looked at

	cost       int
	since      time.Duration
	next, prev *Waiter
	queued     bool
}

// Since is when the waiter arrived.
func (w *Waiter) Since() time.Duration { return w.since }

// Cost is what the waiter asked for.
func (w *Waiter) Cost() int { return w.cost }

// Gate decides who may run. Costs are counted in slots and are at least one;
// most arrivals cost exactly that.
type Gate struct {
	law        limit.Law
	queueSize  int
	closed     spillway.Reason // why the intake is closed; zero while open
	inFlight   int             // slots in use
	head, tail *Waiter
	queued     int
	granted    int // taken out of the queue, not yet taken up by their callers
	drain      rate.Meter
	counts     Counts
	queueWait  histogram.Histogram
	service    histogram.Histogram
}

// Counts is the ledger of every arrival. At any time
// Offered = Admitted + Rejected + Cancelled + Queued, and
// Admitted = Completed + running. No count ever falls.
type Counts struct {
	Offered, Admitted, Completed, Cancelled uint64
	RejectedBy                              [spillway.Closed + 1]uint64
	WouldReject                             uint64 // admitted by Force although the gate would have refused
}

// Rejected sums the rejections over all reasons.
func (c *Counts) Rejected() (n uint64) {
	for _, k := range c.RejectedBy {
		n += k
	}
	return n
}

// New returns an open gate under law, where at most queueSize wait.
func New(law limit.Law, queueSize int) *Gate {
	return &Gate{law: law, queueSize: max(queueSize, 0)}
}

// Arrive decides about new work. w is used only if the verdict is Wait; nil
// means that the work does not wait.
func (g *Gate) Arrive(now time.Duration, cost int, w *Waiter) Decision {
	d := g.decide(cost, w != nil)
	g.counts.Offered++
	switch d.Verdict {
	case Admit:
		g.admit(cost)
	case Wait:
		w.cost, w.since = cost, now
		g.push(w)
	case Reject:
		g.counts.RejectedBy[d.Reason]++
	}
	return d
}

// Force admits work whatever the limit says, unless the intake is closed: dry
// run counts what it would have refused, and enforces nothing. mayWait is
// whether the work could have waited.
func (g *Gate) Force(cost int, mayWait bool) Decision {
	g.counts.Offered++
	if g.closed != 0 {
		g.counts.RejectedBy[g.closed]++
		return Decision{Reject, g.closed}
	}
	// Nobody waits in a dry run: what runs beyond the limit stands for the queue.
	if !g.fits(cost) && (!mayWait || g.inFlight+cost > g.law.Limit()+g.queueSize) {
		g.counts.WouldReject++
	}
	g.admit(cost)
	return Decision{Verdict: Admit}
}

func (g *Gate) decide(cost int, mayWait bool) Decision {
	switch {
	case g.closed != 0:
		return Decision{Reject, g.closed}
	case g.queued == 0 && g.fits(cost):
		return Decision{Verdict: Admit}
	case mayWait && g.queued < g.queueSize:
		return Decision{Verdict: Wait}
	}
	return Decision{Reject, spillway.QueueFull}
}

// fits reports whether cost more slots may be used. Work that costs more than
// the whole limit runs when nothing else does; otherwise it never could.
func (g *Gate) fits(cost int) bool {
	return g.inFlight+cost <= g.law.Limit() || g.inFlight == 0
}

// admit lets work run that did not wait.
func (g *Gate) admit(cost int) {
	g.counts.Admitted++
	g.inFlight += cost
	g.queueWait.Record(0)
}

// Taken says that a waiter was there to take what Next granted, after a wait of
// d. Only then is it admitted: until then it counts as queued, and its slots as
// in use.
func (g *Gate) Taken(d time.Duration) {
	g.granted--
	g.counts.Admitted++
	g.queueWait.Record(int64(d))
}

// Abandoned counts an arrival whose caller had left before it asked.
func (g *Gate) Abandoned() {
	g.counts.Offered++
	g.counts.Cancelled++
}

// Leave takes a waiter whose caller has left out of the queue. It returns false
// if the waiter was granted or dropped before; then the caller must take up or
// Revoke what it was granted.
func (g *Gate) Leave(w *Waiter) bool {
	if !g.remove(w) {
		return false
	}
	g.counts.Cancelled++
	return true
}

// Expire is Leave for a waiter that waited as long as it was allowed to.
func (g *Gate) Expire(w *Waiter) bool {
	if !g.remove(w) {
		return false
	}
	g.counts.RejectedBy[spillway.WaitTooLong]++
	return true
}

// Revoke takes back a grant that was not Taken, because the caller left while
// it was being told.
func (g *Gate) Revoke(cost int) {
	g.granted--
	g.counts.Cancelled++
	g.inFlight -= cost
}

// End gives the slots of one piece of work back. sample is nil when the work
// did not finish, as when it panicked: then its duration says nothing.
func (g *Gate) End(now time.Duration, started time.Duration, cost int, sample *limit.Sample) {
	g.inFlight -= cost
	g.counts.Completed++
	g.drain.Add(now, 1)
	if sample != nil {
		g.service.Record(int64(now - started))
		g.law.Observe(*sample)
	}
}

// Next grants the oldest waiter if it may run now; nil means that nobody may.
// Call it until it returns nil after whatever may have made room. The waiter's
// side answers with Taken or Revoke.
func (g *Gate) Next() *Waiter {
	w := g.head
	if w == nil || !g.fits(w.cost) {
		return nil
	}
	return g.grant(w)
}

// NextForced grants the oldest waiter whatever the limit says: for a gate that
// has stopped enforcing.
func (g *Gate) NextForced() *Waiter {
	if g.head == nil {
		return nil
	}
	return g.grant(g.head)
}

func (g *Gate) grant(w *Waiter) *Waiter {
	g.remove(w)
	g.granted++
	g.inFlight += w.cost
	return w
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

// Drop takes the oldest waiter out as rejected, with the reason for which the
// intake is closed; nil means that nobody waits.
func (g *Gate) Drop() *Waiter {
	w := g.head
	if w == nil {
		return nil
	}
	g.remove(w)
	g.counts.RejectedBy[g.closed]++
	return w
}

// RetryAfter predicts when those who wait now will have been served: the
// backlog over the measured drain rate. Zero means that there is nothing to go
// by: nothing has been seen to end, or the gate will not open again.
func (g *Gate) RetryAfter(now time.Duration) time.Duration {
	perSecond := g.drain.PerSecond(now)
	if perSecond <= 0 || g.closed == spillway.Closed {
		return 0
	}
	return time.Duration(float64(g.queued+1) / perSecond * float64(time.Second))
}

// Law returns the law, for reading.
func (g *Gate) Law() limit.Law { return g.law }

// InFlight is how many slots are in use.
func (g *Gate) InFlight() int { return g.inFlight }

// Queued is how many wait, or were granted and have not answered yet.
func (g *Gate) Queued() int { return g.queued + g.granted }

// Idle reports whether nothing runs and nobody waits.
func (g *Gate) Idle() bool { return g.inFlight == 0 && g.queued == 0 }

// Counts returns the ledger.
func (g *Gate) Counts() Counts { return g.counts }

// Histograms returns copies of the queue waits of all admitted work and of the
// time that it then took to finish, in nanoseconds.
func (g *Gate) Histograms() (queueWait, service *histogram.Histogram) {
	return g.queueWait.Clone(), g.service.Clone()
}

func (g *Gate) push(w *Waiter) {
	w.prev, w.next, w.queued = g.tail, nil, true
	if g.tail == nil {
		g.head = w
	} else {
		g.tail.next = w
	}
	g.tail = w
	g.queued++
}

func (g *Gate) remove(w *Waiter) bool {
	if !w.queued {
		return false
	}
	if w.prev == nil {
		g.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		g.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.next, w.prev, w.queued = nil, nil, false
	g.queued--
	return true
}
