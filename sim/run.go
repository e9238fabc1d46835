package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/limit"
)

// call is one attempt of a caller, from its arrival until its work has ended.
// Calls are used again.
type call struct {
	class    *Class
	kind     int           // index of the class
	tally    *Tally        // of its class; nil before the warm-up has ended
	first    time.Duration // when the caller tried for the first time
	tries    int
	id       uint64 // number of the attempt, from 1
	at       time.Duration
	deadline time.Duration
	recorded time.Duration // work of the trace; zero: none
	work     time.Duration
	fails    bool

	state   state
	left    bool // the caller does not wait for the end
	started time.Duration
	waiter  gate.Waiter
	seq     uint64  // of its admission by a gate
	index   int     // in the backend
	until   float64 // of a shared backend's clock

	gen  uint32 // rises when the call is used again
	next *call
}

type state uint8

const (
	fresh state = iota
	waiting
	running
)

// run is one simulation under way: a loop over events, in the order of time.
type run struct {
	sc      *Scenario
	now     time.Duration
	agenda  agenda
	door    door
	backend engine
	report  *Report

	arrivals, work, patience *rand.Rand // what is drawn for one does not change the others

	drawn     uint64 // calls of the scenario
	attempts  uint64
	changes   int // made
	slots     int // of the backend now
	speed     float64
	inBackend int
	tokens    float64 // of the retry budget
	free      *call
	point     Point // under way
	rejected  [spillway.Closed + 1]uint64
}

// reserve is how many retries a budget allows before any success.
const reserve = 10

// Run simulates s and reports what became of every call. The same scenario gives
// the same report, to the last digit. An error says what is wrong with the
// scenario.
func Run(s Scenario) (Report, error) {
	sc, err := s.normal()
	if err != nil {
		return Report{}, err
	}
	r := &run{
		sc:       &sc,
		report:   newReport(&sc),
		arrivals: rand.New(rand.NewPCG(sc.Seed, 0x51ee)),
		work:     rand.New(rand.NewPCG(sc.Seed, 0xbeef)),
		patience: rand.New(rand.NewPCG(sc.Seed, 0xcafe)),
		slots:    sc.Backend.slots,
		speed:    1,
		tokens:   reserve,
	}
	if sc.Policy.build == nil {
		sc.Policy = Limiter(limit.NewAdaptive, Settings{})
	}
	r.backend = sc.Backend.engine(r)
	if r.door, err = sc.Policy.build(r); err != nil {
		return Report{}, err
	}
	r.nextArrival()
	for _, c := range sc.Changes {
		r.agenda.add(c.At, change, nil, 0)
	}
	for {
		e, ok := r.agenda.next()
		if !ok {
			break
		}
		r.passPoints(e.at)
		r.now = e.at
		r.handle(e)
	}
	r.passPoints(never)
	r.report.finish(r)
	return *r.report, nil
}

func (r *run) handle(e event) {
	if e.call != nil && e.gen != e.call.gen {
		return
	}
	switch e.kind {
	case arrive:
		c := r.take()
		r.draw(c)
		r.drawn++
		r.arrive(c)
		r.nextArrival()
	case again:
		r.arrive(e.call)
	case finish:
		r.backend.finish(e)
	case expire:
		r.expired(e.call)
	case overdue:
		if e.call.state == waiting && r.door.overdue(e.call) {
			r.refuse(e.call, spillway.WaitTooLong, 0)
			r.door.dispatch()
		}
	case change:
		c := r.sc.Changes[r.changes]
		r.changes++
		if c.Slots > 0 {
			r.slots = c.Slots
		}
		if c.Speed > 0 {
			r.speed = c.Speed
		}
		r.backend.change(r.slots, r.speed)
		if o, ok := r.door.(*oracle); ok { // nobody else is told
			o.dispatch()
		}
	}
}

func (r *run) nextArrival() {
	end := r.sc.Duration
	if at := max(r.sc.Arrivals.Next(r.drawn, r.now, end, r.arrivals), r.now); at < end {
		r.agenda.add(at, arrive, nil, 0)
	}
}

// take returns a call that nobody uses.
func (r *run) take() *call {
	c := r.free
	if c == nil {
		return &call{}
	}
	r.free = c.next
	*c = call{gen: c.gen}
	return c
}

func (r *run) recycle(c *call) {
	c.gen++
	c.next, r.free = r.free, c
}

// draw makes c a new call of the scenario.
func (r *run) draw(c *call) {
	c.first, c.tries = r.now, 1
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

func (r *run) arrive(c *call) {
	r.attempts++
	c.id, c.at, c.deadline = r.attempts, r.now, never
	if c.class.Deadline > 0 {
		c.deadline = r.now + c.class.Deadline
	}
	r.point.Offered++
	if c.tally != nil {
		c.tally.Offered++
		if c.tries > 1 {
			c.tally.Retries++
		}
	}
	r.event(c, Arrived)
	r.door.arrive(c)
}

// wait keeps c until the door admits or refuses it, at most until most.
func (r *run) wait(c *call, most time.Duration) {
	c.state = waiting
	r.event(c, Waits)
	if c.deadline != never {
		r.agenda.add(c.deadline, expire, c, c.gen)
	}
	if most < c.deadline {
		r.agenda.add(most, overdue, c, c.gen)
	}
}

func (r *run) admit(c *call) {
	watched := c.state == waiting // for its deadline
	c.state, c.started = running, r.now
	r.event(c, Admitted)
	r.inBackend++
	r.report.Peak = max(r.report.Peak, r.inBackend)
	mayLeave := r.backend.start(c)
	if !watched && c.deadline != never && (mayLeave || r.sc.Retry.Attempts > 1) {
		r.agenda.add(c.deadline, expire, c, c.gen)
	}
}

// ended is called by the backend when work is done, or taken out.
func (r *run) ended(c *call) {
	r.inBackend--
	late := c.left || r.now > c.deadline
	o := limit.Success
	switch {
	case late:
		o = limit.Censored
	case c.fails:
		o = limit.Failed
	default:
		r.point.OK++
		if r.now >= r.sc.Warmup && r.now < r.sc.Duration {
			r.report.Classes[c.kind].Goodput++ // a count until the end
		}
		r.tokens = min(r.tokens+r.sc.Retry.Budget, reserve)
	}
	if t := c.tally; t != nil {
		switch o {
		case limit.Success:
			t.OK++
		case limit.Failed:
			t.Failed++
		default:
			t.Late++
		}
		t.Latency.Record(int64(r.now - c.at))
	}
	r.ending(c, o)
	r.door.ended(c, o)
	if o == limit.Failed || late && !c.left {
		r.retry(c, 0)
	}
	r.recycle(c)
	r.door.dispatch()
}

// refuse ends an attempt that was not started.
func (r *run) refuse(c *call, reason spillway.Reason, after time.Duration) {
	r.refusal(c, reason)
	if t := c.tally; t != nil {
		t.Refused++
		t.Refusal.Record(int64(r.now - c.at))
		r.rejected[reason]++
	}
	r.point.Refused++
	r.retry(c, after)
	r.recycle(c)
}

// expired is called when the caller's deadline has come.
func (r *run) expired(c *call) {
	switch c.state {
	case waiting:
		if !r.door.leave(c) {
			return
		}
		r.event(c, Left)
		if t := c.tally; t != nil {
			t.Left++
			t.Refusal.Record(int64(r.now - c.at))
		}
		r.retry(c, 0)
		r.recycle(c)
		r.door.dispatch()
	case running:
		c.left = true
		r.retry(c, 0)
		if r.backend.leave(c) {
			r.ended(c)
		}
	}
}

// retry makes the caller try again, if it does. after is the limiter's advice.
func (r *run) retry(c *call, after time.Duration) {
	p := &r.sc.Retry
	if c.tries >= p.Attempts {
		return
	}
	if p.Budget > 0 {
		if r.tokens < 1 {
			return
		}
		r.tokens--
	}
	wait := float64(p.Backoff) * math.Pow(2, float64(c.tries-1))
	if p.MaxBackoff > 0 {
		wait = min(wait, float64(p.MaxBackoff))
	}
	wait *= 0.5 + r.patience.Float64()/2
	if p.Respect {
		wait = max(wait, float64(after))
	}
	if wait >= float64(r.sc.Duration-r.now) {
		return // the experiment is over by then
	}
	n := r.take()
	n.first, n.tries, n.recorded = c.first, c.tries+1, c.recorded
	r.drawWork(n, c.kind)
	r.agenda.add(r.now+time.Duration(wait), again, n, n.gen)
}

// parallel is how many calls the backend serves now at full speed.
func (r *run) parallel() int { return r.sc.Backend.parallel(r.slots) }
