package gate

import (
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/priority"
	"github.com/spillway-go/spillway/internal/refusal"
)

// account is the ledger of one level, beside the refusals in shortage. The number of offers follows from the
// other counts.
type account struct {
	admitted, completed, cancelled uint64
	granted                        int // granted waiters whose callers have not answered yet
	inFlight                       int // slots in use
}

// Counts is the ledger of arrivals. At any time
// Offered = Admitted + Rejected + Cancelled + Queued, and
// Admitted = Completed + running. No count ever falls.
type Counts struct {
	Offered, Admitted, Completed, Cancelled uint64
	RejectedBy                              [refusal.Reasons]uint64
	// WouldRejectBy is admitted work that an enforcing gate would have refused.
	WouldRejectBy [refusal.Reasons]uint64
}

// Rejected sums the rejections over all reasons.
func (c *Counts) Rejected() uint64 { return total(&c.RejectedBy) }

// WouldReject sums WouldRejectBy over all reasons.
func (c *Counts) WouldReject() uint64 { return total(&c.WouldRejectBy) }

func total(by *[refusal.Reasons]uint64) (n uint64) {
	for _, k := range by {
		n += k
	}
	return n
}

// Counts returns the ledger of all levels.
func (g *Gate) Counts() (c Counts) {
	for lv := range g.ledger {
		g.sum(&c, lv)
	}
	return c
}

// CountsOf returns the ledger of a priority.
func (g *Gate) CountsOf(p spillway.Priority) (c Counts) {
	g.sum(&c, priority.Level(p))
	return c
}

// offered is how many arrivals of a level there were.
func (g *Gate) offered(lv int) (n uint64) {
	a := &g.ledger[lv]
	n = a.admitted + a.cancelled
	if g.shortage != &noShortage {
		n += total(&g.rejected[lv]) + uint64(g.queues[lv].n+a.granted)
	}
	return n
}

func (g *Gate) sum(c *Counts, lv int) {
	a := &g.ledger[lv]
	c.Admitted += a.admitted
	c.Completed += a.completed
	c.Cancelled += a.cancelled
	c.Offered += g.offered(lv)
	for r := range refusal.Reasons {
		c.RejectedBy[r] += g.rejected[lv][r]
		c.WouldRejectBy[r] += g.would[lv][r]
	}
}

// Taken records that the caller of w has accepted the grant from Next, after a wait of d. Only then
// is the work admitted. Until then the work counts as queued, and its slots as in use.
func (g *Gate) Taken(w *Waiter, d time.Duration) {
	g.answered(w.level)
	g.ledger[w.level].admitted++
	g.waits.Record(int64(d))
}

func (g *Gate) answered(lv int) {
	g.granted--
	g.ledger[lv].granted--
}

// Abandoned counts an arrival whose caller had left before the gate was asked.
func (g *Gate) Abandoned(p spillway.Priority) { g.ledger[priority.Level(p)].cancelled++ }

// Late turns the latest cancellation of priority p, by Leave, Revoke or Abandoned, into a refusal:
// the caller is still there for an answer, but its deadline has passed. w is its place in the queue, or nil. Call
// Late under the same lock.
func (g *Gate) Late(p spillway.Priority, w *Waiter) {
	if w != nil {
		g.rejectedOf(w.kind, 1)
	}
	lv := priority.Level(p)
	g.ledger[lv].cancelled--
	g.beginShortage()
	g.rejected[lv][spillway.ReasonDeadlineTooClose]++
}

// Shrink returns some of the slots of running work, which runs on with the rest. The owner lowers
// the cost of the grant.
func (g *Gate) Shrink(w Grant, slots int) { g.giveBack(&w, slots) }

// giveBack takes slots of running work.
func (g *Gate) giveBack(w *Grant, slots int) {
	g.inFlight -= slots
	g.ledger[priority.Level(w.Priority)].inFlight -= slots
	w.tally.InFlight -= slots
	if g.inFlight < g.Limit() {
		g.freed = 0
	}
}

// InFlight is how many slots are in use.
func (g *Gate) InFlight() int { return g.inFlight }

// InFlightBy is how many slots work of priority p uses.
func (g *Gate) InFlightBy(p spillway.Priority) int { return g.ledger[priority.Level(p)].inFlight }

// Running is how many pieces of work run, long work included. Granted work counts once its caller
// has answered.
func (g *Gate) Running() int { return g.running - g.granted }

// Long is how many pieces of long work run.
func (g *Gate) Long() int { return g.long }

// Queued is how many callers wait, or were granted and have not answered yet.
func (g *Gate) Queued() int { return g.queued + g.granted }

// Large is how many waiters cost more than one slot.
func (g *Gate) Large() int { return g.large }

// QueuedBy is Queued for one priority.
func (g *Gate) QueuedBy(p spillway.Priority) int {
	lv := priority.Level(p)
	return g.queues[lv].n + g.ledger[lv].granted
}

// Idle reports whether nothing runs and nothing waits.
func (g *Gate) Idle() bool { return g.running == 0 && g.queued == 0 }
