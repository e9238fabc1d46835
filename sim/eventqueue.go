package sim

import "time"

// event is a scheduled event. Events with the same time run in the order in which
// they were scheduled, so that a run is deterministic.
type event struct {
	at   time.Duration
	seq  uint64
	call *call
	gen  uint32 // of the call, or of the backend's timer: a stale event is skipped
	kind kind
}

type kind uint8

const (
	arrive  kind = iota // the next call of the scenario
	again               // a call that was tried before
	finish              // the backend's own
	expire              // the caller leaves
	overdue             // the caller has waited as long as the gate allows
	change              // of the backend
)

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// eventQueue is a heap of events, four children to a node.
type eventQueue struct {
	heap []event
	seq  uint64
}

func (a *eventQueue) add(at time.Duration, k kind, c *call, gen uint32) {
	a.seq++
	e := event{at, a.seq, c, gen, k}
	a.heap = append(a.heap, e)
	i := len(a.heap) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&a.heap[parent]) {
			break
		}
		a.heap[i] = a.heap[parent]
		i = parent
	}
	a.heap[i] = e
}

// next removes and returns the earliest event; false means that no event is left.
func (a *eventQueue) next() (event, bool) {
	if len(a.heap) == 0 {
		return event{}, false
	}
	first := a.heap[0]
	n := len(a.heap) - 1
	last := a.heap[n]
	a.heap = a.heap[:n]
	i := 0
	for {
		child := 4*i + 1
		if child >= n {
			break
		}
		end := min(child+4, n)
		for k := child + 1; k < end; k++ {
			if a.heap[k].before(&a.heap[child]) {
				child = k
			}
		}
		if !a.heap[child].before(&last) {
			break
		}
		a.heap[i] = a.heap[child]
		i = child
	}
	if n > 0 {
		a.heap[i] = last
	}
	return first, true
}
