package gate

import "time"

// vainTurns is the number of intervals until the next turn of the floor after a turn without a
// grant.
const vainTurns = 16

// floor tracks when the lowest level that waits has its turn.
type floor struct {
	passed int           // grants while others waited, since the last turn
	every  int           // passed grants until the next turn
	at     time.Duration // when the current turn began
}

func (f *floor) due() bool { return f.passed >= f.every }

// pass counts a grant while others wait.
func (f *floor) pass(now time.Duration) {
	if !f.due() {
		if f.passed++; f.due() {
			f.at = now
		}
	}
}

// over ends the turn. The next turn comes after the given number of intervals of Floor grants.
func (f *floor) over(intervals int) { f.passed, f.every = 0, intervals*Floor-1 }

// lowest returns the first waiter of the lowest level during the turn of the floor. If the waiter
// needs more slots than are free, slots are gathered, but only for a bounded time: slow work, or
// work that hangs, may hold the other slots.
func (g *Gate) lowest(now time.Duration) *Waiter {
	if !g.floor.due() {
		return nil
	}
	for i := levels - 1; i >= 0; i-- {
		if w := g.queues[i].first; w != nil {
			if now-g.floor.at > g.GatherFor() && !g.fits(w.cost) {
				g.floor.over(vainTurns)
				return nil
			}
			return w
		}
	}
	return nil
}

// GatherFor is how long slots are gathered for large work: about as long as the slowest running
// work takes. No event marks the end of the gathering. So while a waiter that costs more than one
// slot waits, the owner of the gate calls Next at this interval.
func (g *Gate) GatherFor() time.Duration {
	return time.Duration(max(2*g.service.upper(), float64(burstLeast)))
}

// gathers reports whether an arrival leaves a free slot to larger work of lower priority. The
// arrival must have the time to wait until the larger work has run.
func (g *Gate) gathers(now time.Duration, lv int, kind uint8, a *Arrival) bool {
	if g.queued == 0 || g.queued >= g.cfg.QueueSize || a.Traits&OverShare != 0 {
		return false
	}
	w := g.lowest(now)
	if w == nil || w.level <= lv || g.fits(w.cost) {
		return false
	}
	wait := float64(g.GatherFor()) + g.service.holdOf(w.level, w.kind)
	return wait < float64(g.cfg.MaxWait) && wait < float64(left(now, a.Deadline))-g.service.kinds.list[kind].high
}

// blocks reports whether w, the first waiter of a queue, would hold up the waiters behind it: w
// needs more slots than are free, and has waited for twice as long as slots are gathered. The
// waiters behind w then pass it, because slow work, or work that hangs, may hold the other slots.
// The floor's turn gathers slots for w again.
func (g *Gate) blocks(now time.Duration, w *Waiter) bool {
	return w.cost > 1 && !g.unbounded() && now-w.since > 2*g.GatherFor() && !g.fits(w.cost)
}
