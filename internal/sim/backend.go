package sim

import (
	"fmt"
	"math"
	"time"
)

// Backend is what the policy protects. Make one with NWay, NewestFirst, Degrading or
// Database.
type Backend struct {
	kind        backendKind
	newest      bool // serve the newest waiting call first
	slots       int
	connections int
	gamma       float64
}

type backendKind uint8

const (
	noBackend backendKind = iota
	nWay
	sharing
)

// NWay serves as many calls as it has slots, each at full speed, behind a hidden FIFO queue: more
// concurrency adds latency and never throughput. A caller that leaves removes its call from the
// queue. A call in a slot runs to its end at the speed at which it started, even if its caller
// leaves.
func NWay(slots int) Backend { return Backend{kind: nWay, slots: slots} }

// NewestFirst is NWay with an unfair queue. It serves the newest call first. Every 61st time it
// serves the oldest call, much as the scheduler of Go does with goroutines. Most calls then see no
// queue, however long it is, and the others wait for very long.
func NewestFirst(slots int) Backend { return Backend{kind: nWay, slots: slots, newest: true} }

// Degrading runs all calls at once. Up to slots calls run at full speed; beyond that the total
// throughput falls, as (slots/calls)^gamma. With a gamma of 0.5 the service thrashes; with 0 it
// shares its capacity fairly. Work ends when its caller leaves.
func Degrading(slots int, gamma float64) Backend {
	return Backend{kind: sharing, slots: slots, connections: math.MaxInt, gamma: gamma}
}

// Database is a pool of connections in front of a shared processor: a query holds its connection
// while it runs, further queries queue for a connection, and more than cpu running queries slow
// each other down. So there are two hidden queues. Work ends when its caller leaves.
func Database(connections, cpu int) Backend {
	return Backend{kind: sharing, slots: cpu, connections: connections}
}

// parallel is how many calls at once the backend serves at full speed.
func (b Backend) parallel(slots int) int {
	if b.kind == sharing {
		return min(slots, b.connections)
	}
	return slots
}

func (b Backend) check() error {
	switch {
	case b.kind == noBackend:
		return fmt.Errorf("none: use NWay, NewestFirst, Degrading or Database")
	case b.slots < 1:
		return fmt.Errorf("it has %d slots: give it at least 1", b.slots)
	case b.kind == sharing && b.connections < 1:
		return fmt.Errorf("it has %d connections: give it at least 1", b.connections)
	case !(b.gamma >= 0 && b.gamma <= 10):
		return fmt.Errorf("gamma is %v: use 0 (fair sharing) to 10, for example 0.5", b.gamma)
	}
	return nil
}

// engine is a running backend. It calls run.ended when work is done.
type engine interface {
	start(c *call) (mayLeave bool) // reports whether the caller can still remove the call
	leave(c *call) bool            // removes the call; false if the call must run to its end
	finish(c *call)                // nil: the replica's timer is due
	change(slots int, speed float64)
}

func (b Backend) engine(at *replica) engine {
	if b.kind == nWay {
		return &nway{run: at.run, slots: b.slots, speed: 1, newest: b.newest}
	}
	return &shared{run: at.run, replica: at.n, connections: b.connections, slots: float64(b.slots), speed: 1, gamma: b.gamma}
}

// line is a FIFO queue. A call whose caller left stays in the queue and is skipped later: its
// generation has changed.
type line struct {
	places []place
	head   int
}

type place struct {
	call *call
	gen  uint32
}

func (l *line) push(c *call) {
	for l.head < len(l.places) && l.places[l.head].call.gen != l.places[l.head].gen {
		l.head++
	}
	if l.head > 64 && 2*l.head > len(l.places) {
		l.places = l.places[:copy(l.places, l.places[l.head:])]
		l.head = 0
	}
	l.places = append(l.places, place{c, c.gen})
}

// pop returns nil when the line is empty.
func (l *line) pop() *call {
	for l.head < len(l.places) {
		p := l.places[l.head]
		l.head++
		if p.call.gen == p.gen {
			return p.call
		}
	}
	l.places, l.head = l.places[:0], 0
	return nil
}

// popLast is pop from the other end.
func (l *line) popLast() *call {
	for l.head < len(l.places) {
		p := l.places[len(l.places)-1]
		l.places = l.places[:len(l.places)-1]
		if p.call.gen == p.gen {
			return p.call
		}
	}
	l.places, l.head = l.places[:0], 0
	return nil
}

// Values of call.index for calls that are not in a workHeap.
const (
	queued = -1 - iota // in the backend's hidden queue
	served             // in a slot of an N-way backend
)

// lasting converts nanoseconds to a Duration. The result is bounded, so that adding it to a time of
// the run cannot overflow.
func lasting(ns float64) time.Duration { return time.Duration(min(ns, float64(math.MaxInt64/4))) }
