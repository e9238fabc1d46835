package sim

import (
	"fmt"
	"math"
	"time"
)

// Backend is what the policy protects. Make one with NWay, Degrading or Database.
type Backend struct {
	kind        backendKind
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

// NWay serves as many calls as it has slots, each at full speed, behind a hidden
// FIFO queue: more concurrency adds latency and never throughput. A caller that
// leaves takes its call out of that queue; a call in a slot runs to its end, also
// without its caller, at the speed at which it started.
func NWay(slots int) Backend { return Backend{kind: nWay, slots: slots} }

// Degrading runs all calls at once. Up to slots calls run at full speed; beyond
// that the total throughput falls, as (slots/calls)^gamma: 0.5 is a service that
// thrashes, 0 one that shares fairly. Work ends when its caller leaves.
func Degrading(slots int, gamma float64) Backend {
	return Backend{kind: sharing, slots: slots, connections: math.MaxInt, gamma: gamma}
}

// Database is a pool of connections in front of a shared processor: a query
// holds its connection while it runs, further ones queue for a connection, and
// more than cpu running queries slow each other down. So there are two hidden
// queues. Work ends when its caller leaves.
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
		return fmt.Errorf("none: use NWay, Degrading or Database")
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
	start(c *call) (mayLeave bool) // whether its caller can still take it out
	leave(c *call) bool            // takes it out; false if it must run to its end
	finish(e event)
	change(slots int, speed float64)
}

func (b Backend) engine(s *run) engine {
	if b.kind == nWay {
		return &nway{run: s, slots: b.slots, speed: 1}
	}
	return &shared{run: s, connections: b.connections, slots: float64(b.slots), speed: 1, gamma: b.gamma}
}

// line is a FIFO queue. A call whose caller left stays in it and is skipped: its
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

type nway struct {
	run    *run
	slots  int
	speed  float64
	busy   int
	hidden line
}

func (b *nway) start(c *call) bool {
	if b.busy < b.slots {
		b.serve(c)
		return false
	}
	c.index = queued
	b.hidden.push(c)
	return true
}

func (b *nway) serve(c *call) {
	b.busy++
	c.index = served
	b.run.events.add(b.run.now+lasting(float64(c.work)/b.speed), finish, c, c.gen)
}

func (b *nway) fill() {
	for b.busy < b.slots {
		c := b.hidden.pop()
		if c == nil {
			return
		}
		b.serve(c)
	}
}

func (b *nway) leave(c *call) bool { return c.index == queued }

func (b *nway) finish(e event) {
	b.busy--
	b.fill()
	b.run.ended(e.call)
}

func (b *nway) change(slots int, speed float64) {
	b.slots, b.speed = slots, speed
	b.fill()
}

// shared is processor sharing with a knee, behind a number of connections. A
// virtual clock counts the work done so far for each running call, so a call is
// done when the clock reaches its start plus its work.
type shared struct {
	run         *run
	connections int
	slots       float64
	speed       float64
	gamma       float64
	hidden      line
	running     workHeap
	clock       float64 // ns of work
	last        time.Duration
	timer       uint32 // generation of the valid finish event
}

func (b *shared) start(c *call) bool {
	if len(b.running) >= b.connections {
		c.index = queued
		b.hidden.push(c)
		return true
	}
	b.advance()
	b.serve(c)
	b.arm()
	return true
}

func (b *shared) serve(c *call) {
	c.until = b.clock + float64(c.work)
	b.running.push(c)
}

func (b *shared) leave(c *call) bool {
	if c.index >= 0 {
		b.advance()
		b.running.remove(c.index)
		b.fill()
		b.arm()
	}
	return true
}

func (b *shared) fill() {
	for len(b.running) < b.connections {
		c := b.hidden.pop()
		if c == nil {
			return
		}
		b.serve(c)
	}
}

// finish ends the calls that are done within the nanosecond.
func (b *shared) finish(e event) {
	if e.gen != b.timer {
		return
	}
	b.advance()
	for len(b.running) > 0 && b.running[0].until <= b.clock+1 {
		c := b.running[0]
		b.running.remove(0)
		b.fill()
		b.run.ended(c) // may start others
	}
	b.arm()
}

func (b *shared) change(slots int, speed float64) {
	b.advance()
	b.slots, b.speed = float64(slots), speed
	b.arm()
}

// rate is the work done for each running call per nanosecond.
func (b *shared) rate() float64 {
	r := b.speed
	if n := float64(len(b.running)); n > b.slots {
		r *= math.Pow(b.slots/n, 1+b.gamma)
	}
	return r
}

func (b *shared) advance() {
	if len(b.running) > 0 && b.run.now > b.last {
		b.clock += float64(b.run.now-b.last) * b.rate()
	}
	b.last = b.run.now
}

// arm schedules the end of the call that will be done first if nothing changes.
func (b *shared) arm() {
	b.timer++
	if len(b.running) > 0 {
		left := max(b.running[0].until-b.clock, 0) / b.rate()
		b.run.events.add(b.run.now+lasting(left)+1, finish, nil, b.timer)
	}
}

// lasting turns nanoseconds into a duration that can be added to any time of a
// run.
func lasting(ns float64) time.Duration { return time.Duration(min(ns, float64(math.MaxInt64/4))) }

// workHeap has the call that is done first on top. Each call holds its index.
type workHeap []*call

// The index of a call that is not in the heap.
const (
	queued = -1 - iota // in the backend's hidden queue
	served             // in a slot of an N-way backend
)

func (h *workHeap) push(c *call) {
	*h = append(*h, c)
	h.up(len(*h)-1, c)
}

func (h workHeap) up(i int, c *call) {
	for i > 0 {
		parent := (i - 1) / 2
		if c.until >= h[parent].until {
			break
		}
		h.put(i, h[parent])
		i = parent
	}
	h.put(i, c)
}

func (h workHeap) put(i int, c *call) { h[i], c.index = c, i }

func (h *workHeap) remove(i int) {
	last := len(*h) - 1
	c := (*h)[last]
	*h = (*h)[:last]
	if i == last {
		return
	}
	for {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && (*h)[child+1].until < (*h)[child].until {
			child++
		}
		if c.until <= (*h)[child].until {
			break
		}
		h.put(i, (*h)[child])
		i = child
	}
	h.up(i, c)
}
