package gate

import "time"

// vainTurns is how many turns of the floor are left out once one came to nothing.
const vainTurns = 16

// floor says when it is the turn of the lowest level that waits.
type floor struct {
	passed int           // grants while others waited, since the last turn
	every  int           // so many of them, then it is its turn
	at     time.Duration // when its turn came
}

func (f *floor) turn() bool { return f.passed >= f.every }

// pass counts a grant while others wait.
func (f *floor) pass(now time.Duration) {
	if !f.turn() {
		if f.passed++; f.turn() {
			f.at = now
		}
	}
}

// over ends the turn.
func (f *floor) over(turns int) { f.passed, f.every = 0, turns*Floor-1 }

// lowest is the first waiter of the lowest level, if it is its turn. Work that needs more
// slots than are free has its turn for a bounded time, in which they are gathered: longer
// work may run, or work that hangs.
func (g *Gate) lowest(now time.Duration) *Waiter {
	if !g.floor.turn() {
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

// GatherFor is how long slots are gathered for large work: about what the slowest of what
// runs takes. Nothing but time ends that, so a waiter that costs more than one slot has Next
// asked again so often.
func (g *Gate) GatherFor() time.Duration {
	return time.Duration(max(2*g.service.upper(), float64(burstLeast)))
}

// gathers reports whether an arrival leaves a free slot to work of lower priority that needs
// more, because the arrival has the time to wait until that has run.
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

// blocks reports whether the first of a queue has had its time: it needs more slots than are
// free, and has waited longer than others make room. Those behind it pass, until the
// floor's turn gathers slots for it: longer work may hold them, or work that hangs.
func (g *Gate) blocks(now time.Duration, w *Waiter) bool {
	return w.cost > 1 && now-w.since > 2*g.GatherFor() && !g.fits(w.cost)
}
