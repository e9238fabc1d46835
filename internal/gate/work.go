package gate

import (
	"time"

	"github.com/spillway-go/spillway/internal/priority"
	"github.com/spillway-go/spillway/limit"
)

// Work is one piece of running work that the gate keeps in a list. Work holds its slots, or runs aside
// without them: paused while its client takes the time, or parked by a trial (see parking). The owner
// may reuse a Work after EndWork.
//
//	holding ── Pause ──▶ paused ── Back ──▶ holding
//	holding ── a trial ──▶ parked
type Work struct {
	Grant
	Owner any // for the owner; the gate never reads it

	where          whereabouts
	trial          int32         // number of the trial that parked the work
	taken          time.Duration // when the work last took its slots
	since          time.Duration // start of the work, or the end of its last pause
	previous, next *Work
}

// whereabouts is where running work is.
type whereabouts uint8

const (
	nowhere whereabouts = iota // long, or ended
	isHolding
	isPaused
	isParked
)

// Paused reports whether the work is paused without its slots.
func (w *Work) Paused() bool { return w.where == isPaused }

// Aside reports whether the work runs without its slots.
func (w *Work) Aside() bool { return w.where == isPaused || w.where == isParked }

// Since is when the work started, or when its last pause ended.
func (w *Work) Since() time.Duration { return w.since }

// line is a list of work.
type line struct {
	first, last *Work
	n           int
}

func (l *line) push(w *Work) {
	w.previous, w.next = l.last, nil
	if l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
	l.n++
}

func (l *line) remove(w *Work) {
	if w.previous == nil {
		l.first = w.next
	} else {
		w.previous.next = w.next
	}
	if w.next == nil {
		l.last = w.previous
	} else {
		w.next.previous = w.previous
	}
	w.previous, w.next = nil, nil
	l.n--
}

// line is the list of the work in one place.
func (g *Gate) line(of whereabouts) *line {
	if of == isHolding {
		return &g.holding
	}
	return &g.aside[of-isPaused]
}

// move puts w into the list of its whereabouts.
func (g *Gate) move(w *Work, to whereabouts) {
	if w.where == isParked {
		g.service.kinds.list[w.Kind].parked.now--
	}
	if w.where != nowhere {
		g.line(w.where).remove(w)
	}
	if w.where = to; to != nowhere {
		g.beginShortage()
		g.line(to).push(w)
	}
}

// Track begins to keep the work that Arrive or Next started last.
func (g *Gate) Track(w *Work) {
	w.Grant = g.latest
	g.track(w)
}

func (g *Gate) track(w *Work) {
	w.taken, w.since = w.Start, w.Start
	if !w.Long {
		w.where = isHolding
		g.holding.push(w)
	}
}

// EndWork ends tracked work: see End. Work that ends aside is no evidence about other work.
func (g *Gate) EndWork(now time.Duration, w *Work, o limit.Outcome) {
	switch w.where {
	case isHolding:
		g.holding.remove(w)
		w.where = nowhere
		fallthrough
	case nowhere:
		g.end(now, &w.Grant, o)
		return
	}
	k, t := &g.service.kinds.list[w.Kind], w.tally
	if w.where == isParked {
		g.service.loss(now, o, weightOf(now-g.service.lossAt))
		if o != limit.Unknown {
			t.Service.Record(int64(now - w.Start - w.Away))
		}
		if o == limit.Success {
			k.usual.finished(float64(now-w.Start-w.Away), float64(now-k.last))
		}
	}
	g.service.outcome(o)
	t.count(o)
	g.move(w, nowhere)
	g.running--
	g.ledger[priority.Level(w.Priority)].completed++
	k.present--
}

// RevokeWork takes back a grant that was not Taken, because the caller left before the grant reached
// it. The law sees an end with the outcome [limit.Unknown].
func (g *Gate) RevokeWork(now time.Duration, w *Work) {
	lv := priority.Level(w.Priority)
	g.answered(lv)
	g.ledger[lv].cancelled++
	g.running--
	if w.Long {
		g.long--
		return
	}
	g.leaveSlots(now, w)
}

// LengthenWork turns running work into long work: it returns its slots and runs on. The law sees an end
// with the outcome [limit.Unknown].
func (g *Gate) LengthenWork(now time.Duration, w *Work) {
	g.long++
	g.leaveSlots(now, w)
	w.Long = true
}

// leaveSlots takes work out of the lists. Work that is aside has no slots to return.
func (g *Gate) leaveSlots(now time.Duration, w *Work) {
	if w.where == isHolding {
		g.putAside(now, w, nowhere)
	} else {
		g.move(w, nowhere)
	}
	g.service.kinds.list[w.Kind].present--
}

// MayPause reports whether one more piece of work may run aside.
func (g *Gate) MayPause() bool { return g.aside[0].n+g.aside[1].n < g.cfg.MaxAside }

// Pause takes the slots of work that waits for its client.
func (g *Gate) Pause(now time.Duration, w *Work) { g.putAside(now, w, isPaused) }

// putAside takes the slots of work, which runs on. The law sees an end with the outcome
// [limit.Unknown].
func (g *Gate) putAside(now time.Duration, w *Work, where whereabouts) {
	g.move(w, where)
	g.giveBack(&w.Grant, w.Cost)
	g.unknown(w.taken, now, &w.Grant)
}

// Back gives paused work its slots again, also over the limit. The law sees a start.
func (g *Gate) Back(now time.Duration, w *Work) {
	if !w.Aside() {
		return
	}
	if w.where == isPaused {
		w.since = now
	}
	g.move(w, isHolding)
	w.taken = now
	g.start(now, priority.Level(w.Priority), &w.Grant, false)
}

// Oldest returns the work that has held its slots for the longest time, or nil. Next goes on from
// there.
func (g *Gate) Oldest() *Work { return g.holding.first }

// Slowest returns the work that has run for the longest time without a pause, also if it is parked, or nil.
func (g *Gate) Slowest() (slowest *Work) {
	for _, in := range [...]whereabouts{isHolding, isParked} {
		for w := g.line(in).first; w != nil; w = w.next {
			if slowest == nil || w.since < slowest.since {
				slowest = w
			}
		}
	}
	return slowest
}

// Next returns the work that took its slots after w, or nil.
func (w *Work) Next() *Work { return w.next }

// Aside returns how many pieces of work are paused and parked.
func (g *Gate) Aside() (paused, parked int) { return g.line(isPaused).n, g.line(isParked).n }

// Eldest returns the work that was admitted first, or nil. Long work does not count.
func (g *Gate) Eldest() (eldest *Work) {
	for in := isHolding; in <= isParked; in++ {
		for w := g.line(in).first; w != nil; w = w.next {
			if eldest == nil || w.Start < eldest.Start {
				eldest = w
			}
		}
	}
	return eldest
}

// FirstAside returns the first piece of work in the list of paused and in that of parked work, or nil.
func (g *Gate) FirstAside() (paused, parked *Work) {
	return g.line(isPaused).first, g.line(isParked).first
}
