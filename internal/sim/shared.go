package sim

import (
	"math"
	"time"
)

// shared is processor sharing behind a number of connections. Beyond slots running calls, the speed
// of each call falls. A virtual clock counts the work done so far for each running call, so a call
// is done when the clock reaches its start plus its work.
type shared struct {
	run         *run
	replica     int
	connections int
	slots       float64
	speed       float64
	gamma       float64
	hidden      line
	running     workHeap
	clock       float64 // work done for each running call, in nanoseconds
	last        time.Duration
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

// finish ends the calls that are done within this nanosecond.
func (b *shared) finish(*call) {
	b.advance()
	for len(b.running) > 0 && b.running[0].until <= b.clock+1 {
		c := b.running[0]
		b.running.remove(0)
		b.fill()
		b.run.ended(c) // may start other calls
	}
	b.arm()
}

func (b *shared) change(slots int, speed float64) {
	b.advance()
	b.slots, b.speed = float64(slots), speed
	b.arm()
}

// rate returns the work done for each running call per nanosecond.
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
	if len(b.running) == 0 {
		b.run.events.disarm(b.replica)
		return
	}
	left := max(b.running[0].until-b.clock, 0) / b.rate()
	b.run.events.arm(b.replica, b.run.now+lasting(left)+1)
}

// workHeap is a min-heap of calls by the end of their work. Each call holds its index.
type workHeap []*call

func (h *workHeap) push(c *call) {
	*h = append(*h, c)
	h.siftUp(len(*h)-1, c)
}

func (h workHeap) siftUp(i int, c *call) {
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
	h.siftUp(i, c)
}
