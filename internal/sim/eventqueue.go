package sim

import "time"

// event is a scheduled event. Events with the same time run in the order in which
// they were scheduled, so that a run is deterministic.
type event struct {
	at   time.Duration
	seq  uint64
	call *call
	gen  uint32 // generation of the call: stale events are skipped; or a replica, or a plan
	kind kind
}

type kind uint8

const (
	arrive  kind = iota // the next call of the scenario
	again               // a retry
	finish              // the backend has done a call
	timer               // the timer of a backend; gen is the number of its replica
	expire              // the caller leaves
	overdue             // the caller has waited as long as the gate allows
	planned             // gen is the number of the plan
)

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// eventQueue is a priority queue of events, the earliest first. Most events come after all earlier
// events of their kind, such as the ends of equal deadlines. These events are in lanes. Each
// backend has at most one timer. The heap holds all other events, and is small enough for the
// processor's cache.
type eventQueue struct {
	heap   heap
	lanes  [lanes]lane
	timers timers
	seq    uint64
}

// The lanes. They are few, because next looks at each lane for every event.
const (
	arrivals = iota
	overdues
	deadlines // the first of four lanes for deadlines; the class selects the lane
	lanes     = deadlines + 4
)

func (a *eventQueue) number(at time.Duration, k kind, c *call, gen uint32) event {
	a.seq++
	return event{at, a.seq, c, gen, k}
}

func (a *eventQueue) add(at time.Duration, k kind, c *call, gen uint32) {
	a.heap.push(a.number(at, k, c, gen))
}

// follow adds an event that likely comes after all events of lane l. If it does not, the event goes
// to the heap.
func (a *eventQueue) follow(l int, at time.Duration, k kind, c *call, gen uint32) {
	e := a.number(at, k, c, gen)
	if !a.lanes[l].push(e) {
		a.heap.push(e)
	}
}

// arm sets the timer of a replica, and replaces an earlier setting.
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

// heap is a min-heap with four children per node.
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

// lane is a ring of events in order. A stale event stays until it is the first.
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
