package sim

import (
	"math"
	"time"

	"github.com/spillway-go/spillway/internal/gate"
)

// call is one attempt of a caller, from its arrival until its work has ended.
// Calls are reused.
type call struct {
	class    *Class
	kind     int           // index of the class
	tally    *Tally        // tally of the class; nil if the first attempt was in the warm-up
	first    time.Duration // when the caller tried for the first time
	tries    int
	client   uint32
	id       uint64 // number of the attempt, from 1
	at       time.Duration
	deadline time.Duration
	leave    time.Duration // time at which the caller gives up, or never
	recorded time.Duration // work from the trace; zero: drawn from the class
	work     time.Duration
	fails    bool

	state   state
	left    bool // the caller has stopped waiting
	open    bool // counts as an open call of its replica
	replica *replica
	started time.Duration
	waiter  *gate.Waiter // the gate's waiter; reused with the call
	grant   gate.Grant   // the gate's grant, once admitted
	index   int          // place in the workHeap of a shared backend, or queued or served
	until   float64      // end of the work, on the clock of a shared backend

	gen  uint32 // incremented when the call is recycled
	next *call
}

type state uint8

const (
	fresh state = iota
	waiting
	running
)

// waitsUntil returns when the caller leaves.
func (c *call) waitsUntil() time.Duration { return min(c.deadline, c.leave) }

// gaveUp reports whether the caller left before its deadline.
func (c *call) gaveUp() bool { return c.leave < c.deadline }

// take returns an unused call.
func (r *run) take() *call {
	if r.free == nil {
		slab := make([]call, slabSize)
		r.slabs = append(r.slabs, slab)
		for i := range slab {
			slab[i].next, r.free = r.free, &slab[i]
		}
	}
	c := r.free
	r.free = c.next
	*c = call{gen: c.gen, waiter: c.waiter}
	return c
}

// slabSize is how many calls are allocated at once.
const slabSize = 64

func (r *run) recycle(c *call) {
	r.answered(c)
	c.gen++
	c.state = fresh
	c.next, r.free = r.free, c
}

// draw makes c a new call of the scenario.
func (r *run) draw(c *call) {
	c.first, c.tries, c.client = r.now, 1, uint32(r.drawn%uint64(len(r.tokens)))
	k := 0
	if trace, ok := r.sc.Arrivals.(replay); ok {
		k, c.recorded = trace[r.drawn].Class, trace[r.drawn].Work
	} else {
		u := r.work.Float64()
		for ; k < len(r.sc.Classes)-1; k++ {
			if u -= r.sc.Classes[k].Share; u < 0 {
				break
			}
		}
	}
	r.drawWork(c, k)
}

func (r *run) drawWork(c *call, k int) {
	c.class, c.kind = &r.sc.Classes[k], k
	if c.first >= r.sc.Warmup {
		c.tally = &r.report.Classes[k]
	}
	if c.work = c.recorded; c.work == 0 {
		c.work = max(c.class.Service.Draw(r.work), 0)
	}
	if c.class.ErrorRate > 0 && r.work.Float64() < c.class.ErrorRate {
		c.fails = true
		if c.class.FastErrors {
			c.work = time.Duration(float64(time.Millisecond) * (0.5 + r.work.Float64()))
		}
	}
}

// retry schedules the caller's next attempt, unless the caller gives up. after is the wait that the
// limiter advises.
func (r *run) retry(c *call, after time.Duration) {
	p := &r.sc.Retry
	if c.tries >= p.Attempts || c.gaveUp() && r.now >= c.leave {
		return
	}
	if p.Budget > 0 {
		if r.tokens[c.client] < 1 {
			return
		}
		r.tokens[c.client]--
	}
	wait := float64(p.Backoff) * math.Pow(2, float64(c.tries-1))
	if p.MaxBackoff > 0 {
		wait = min(wait, float64(p.MaxBackoff))
	}
	wait *= 0.5 + r.leaving.Float64()/2
	if p.Respect {
		wait = max(wait, float64(after))
	}
	if wait >= float64(r.sc.Duration-r.now) {
		return // the attempt would arrive after Duration
	}
	n := r.take()
	n.first, n.tries, n.client, n.recorded = c.first, c.tries+1, c.client, c.recorded
	r.drawWork(n, c.kind)
	r.events.add(r.now+time.Duration(wait), again, n, n.gen)
}
