package sim

import "time"

// event is something that happens at a time. Events of one time happen in the
// order in which they were scheduled, so that a run is deterministic.
type event struct {
	at   time.Duration
	seq  uint64
	kind kind
	req  *request
	gen  uint32 // of req, or of the backend's timer: a stale event is ignored
}

type kind uint8

const (
	arrive kind = iota
	finish      // the backend's own: req ends, or its timer fires
	expire      // req's deadline
	overdue     // req waited as long as the gate allows
	change      // the next scheduled change
	tick        // the recorder's
)

// agenda is a binary heap of events.
type agenda struct {
	heap []event
	seq  uint64
}

func (a *agenda) push(at time.Duration, k kind, r *request, gen uint32) {
	a.seq++
	e := event{at, a.seq, k, r, gen}
	a.heap = append(a.heap, e)
	i := len(a.heap) - 1
	for i > 0 {
		p := (i - 1) / 4
		if !before(&e, &a.heap[p]) {
			break
		}
		a.heap[i] = a.heap[p]
		i = p
	}
	a.heap[i] = e
}

func (a *agenda) pop() (event, bool) {
	if len(a.heap) == 0 {
		return event{}, false
	}
	top := a.heap[0]
	last := a.heap[len(a.heap)-1]
	a.heap = a.heap[:len(a.heap)-1]
	n := len(a.heap)
	if n == 0 {
		return top, true
	}
	i := 0
	for {
		c := 4*i + 1
		if c >= n {
			break
		}
		for k := c + 1; k < min(c+4, n); k++ {
			if before(&a.heap[k], &a.heap[c]) {
				c = k
			}
		}
		if !before(&a.heap[c], &last) {
			break
		}
		a.heap[i] = a.heap[c]
		i = c
	}
	a.heap[i] = last
	return top, true
}

func before(a, b *event) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }
