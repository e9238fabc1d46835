package sim

import "time"

// event is a scheduled event. Events with the same time run in the order in which
// they were scheduled, so that a run is deterministic.
type event struct {
	at   time.Duration
	seq  uint64
	call *call
	gen  uint32 // of the call: a stale event is skipped; of the others a number
	kind kind
}

type kind uint8

const (
	arrive  kind = iota // the next call of the scenario
	again               // a call that was tried before
	finish              // the backend has done a call
	timer               // a backend's own; gen is its replica
	expire              // the caller leaves
	overdue             // the caller has waited as long as the gate allows
	planned             // gen is the number of the plan
)

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// eventQueue has the earliest event first. Most events are known to come after all of
// their kind, such as the ends of equal deadlines: those stand in lanes. Each backend
// has at most one timer. The heap is for the rest; it stays so small that it fits
// into the processor's cache.
type eventQueue struct {
	heap   heap
	lanes  [lanes]lane
	timers timers
	seq    uint64
}

// lanes are so many that each is worth a look at every event.
const (
	arrivals = iota
	overdues
	deadlines // the first of those of several classes
	lanes     = deadlines + 4
)

func (a *eventQueue) number(at time.Duration, k kind, c *call, gen uint32) event {
	a.seq++
	return event{at, a.seq, c, gen, k}
}

func (a *eventQueue) add(at time.Duration, k kind, c *call, gen uint32) {
	a.heap.push(a.number(at, k, c, gen))
}

// follow is add for an event that likely comes after all others of the lane.
func (a *eventQueue) follow(l int, at time.Duration, k kind, c *call, gen uint32) {
	e := a.number(at, k, c, gen)
	if !a.lanes[l].push(e) {
		a.heap.push(e)
	}
}

// arm sets the timer of a replica, in place of the one it had.
func (a *eventQueue) arm(replica int, at time.Duration) {
	a.seq++
	a.timers.set(replica, at, a.seq)
}

func (a *eventQueue) disarm(replica int) { a.timers.clear(replica) }

// next removes and returns the earliest event; false means that no event is left.
func (a *eventQueue) next() (event, bool) {
	first, from := event{at: never}, -1
	for i := range a.lanes {
		if l := &a.lanes[i]; l.n > 0 {
			if e := l.first(); from < 0 || e.before(&first) {
				first, from = *e, i
			}
		}
	}
	if len(a.heap) > 0 && (from < 0 || a.heap[0].before(&first)) {
		first, from = a.heap[0], lanes
	}
	if t := a.timers.heap; len(t) > 0 {
		e := event{at: t[0].at, seq: t[0].seq, gen: uint32(t[0].of), kind: timer}
		if from < 0 || e.before(&first) {
			a.timers.clear(int(t[0].of))
			return e, true
		}
	}
	switch {
	case from < 0:
		return event{}, false
	case from == lanes:
		a.heap.pop()
	default:
		a.lanes[from].pop()
	}
	return first, true
}

// heap has four children to a node.
type heap []event

func (h *heap) push(e event) {
	*h = append(*h, e)
	a := *h
	i := len(a) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&a[parent]) {
			break
		}
		a[i] = a[parent]
		i = parent
	}
	a[i] = e
}

func (h *heap) pop() {
	n := len(*h) - 1
	a, last := (*h)[:n], (*h)[n]
	*h = a
	i := 0
	for {
		child := 4*i + 1
		if child >= n {
			break
		}
		end := min(child+4, n)
		for k := child + 1; k < end; k++ {
			if a[k].before(&a[child]) {
				child = k
			}
		}
		if !a[child].before(&last) {
			break
		}
		a[i] = a[child]
		i = child
	}
	if n > 0 {
		a[i] = last
	}
}

// lane is a ring of events in order. A stale one stays until it is the first.
type lane struct {
	ring    []event // its length is a power of two
	head, n int
}

func (l *lane) first() *event { return &l.ring[l.head] }

func (l *lane) at(i int) *event { return &l.ring[(l.head+i)&(len(l.ring)-1)] }

// push returns false if the event does not come last.
func (l *lane) push(e event) bool {
	if l.n > 0 && e.at < l.at(l.n-1).at {
		return false
	}
	if l.n == len(l.ring) {
		more := make([]event, max(2*l.n, 16))
		for i := range l.n {
			more[i] = *l.at(i)
		}
		l.ring, l.head = more, 0
	}
	l.n++
	*l.at(l.n - 1) = e
	return true
}

func (l *lane) pop() {
	l.head = (l.head + 1) & (len(l.ring) - 1)
	l.n--
}
