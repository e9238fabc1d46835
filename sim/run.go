package sim

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/refusal"
	"github.com/spillway-go/spillway/limit"
)

// run is one running simulation: a loop over events in time order.
type run struct {
	sc      *Scenario
	now     time.Duration
	events  eventQueue
	policy  admitter
	backend engine
	report  *Report

	arrivals, work, patience *rand.Rand // separate sources, so that draws for one do not change the others

	drawn     uint64 // calls of the scenario
	attempts  uint64
	changes   int // made
	slots     int // of the backend now
	speed     float64
	inBackend int
	tokens    float64 // of the retry budget
	free      *call
	point     Point // current
	rejected  [refusal.Reasons]uint64
}

// reserve is how many retries a budget allows before the first success.
const reserve = 10

// Run simulates s and reports the result of every call. The same scenario always
// gives exactly the same report. An error says what is wrong with the scenario.
func Run(s Scenario) (Report, error) { return RunContext(context.Background(), s) }

// RunContext is Run for long scenarios: when ctx ends it stops, without a report.
func RunContext(ctx context.Context, s Scenario) (Report, error) {
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
	if r.policy, err = sc.Policy.build(r); err != nil {
		return Report{}, err
	}
	r.nextArrival()
	for _, c := range sc.Changes {
		r.events.add(c.At, change, nil, 0)
	}
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return Report{}, ctx.Err()
		}
		e, ok := r.events.next()
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
		if e.call.state == waiting && r.policy.overdue(e.call) {
			r.refuse(e.call, spillway.WaitTooLong, 0)
			r.policy.dispatch()
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
		if o, ok := r.policy.(*oracle); ok { // only an oracle learns of it
			o.dispatch()
		}
	}
}

func (r *run) nextArrival() {
	end := r.sc.Duration
	if at := max(r.sc.Arrivals.Next(r.drawn, r.now, end, r.arrivals), r.now); at < end {
		r.events.add(at, arrive, nil, 0)
	}
}

func (r *run) arrive(c *call) {
	r.attempts++
	c.id, c.at, c.deadline, c.leave = r.attempts, r.now, never, never
	if c.class.LeaveAfter != nil {
		c.leave = r.now + max(c.class.LeaveAfter.Draw(r.patience), 1)
	}
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
	r.policy.arrive(c)
}

// wait keeps c until the policy admits or refuses it, at most until most.
func (r *run) wait(c *call, most time.Duration) {
	c.state = waiting
	r.event(c, Waits)
	if c.waitsUntil() != never {
		r.events.add(c.waitsUntil(), expire, c, c.gen)
	}
	if most < c.waitsUntil() {
		r.events.add(most, overdue, c, c.gen)
	}
}

func (r *run) admit(c *call) {
	watched := c.state == waiting // for its caller
	c.state, c.started = running, r.now
	r.event(c, Admitted)
	r.inBackend++
	r.report.Peak = max(r.report.Peak, r.inBackend)
	mayLeave := r.backend.start(c)
	if !watched && c.waitsUntil() != never && (mayLeave || r.sc.Retry.Attempts > 1) {
		r.events.add(c.waitsUntil(), expire, c, c.gen)
	}
}

// ended is called by the backend when work is done or cancelled.
func (r *run) ended(c *call) {
	r.inBackend--
	late := c.left || r.now > c.waitsUntil()
	o := limit.Success
	switch {
	case late && c.gaveUp():
		o = limit.Canceled
	case late:
		o = limit.Deadline
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
	r.policy.ended(c, o)
	if o == limit.Failed || late && !c.left {
		r.retry(c, 0)
	}
	r.recycle(c)
	r.policy.dispatch()
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

// expired is called when the caller's deadline has passed or it gives up.
func (r *run) expired(c *call) {
	switch c.state {
	case waiting:
		if !r.policy.leave(c) {
			return
		}
		r.event(c, Left)
		if t := c.tally; t != nil {
			t.Left++
			t.Refusal.Record(int64(r.now - c.at))
		}
		r.retry(c, 0)
		r.recycle(c)
		r.policy.dispatch()
	case running:
		c.left = true
		r.retry(c, 0)
		if r.backend.leave(c) {
			r.ended(c)
		}
	}
}

// parallel is how many calls the backend now serves at full speed.
func (r *run) parallel() int { return r.sc.Backend.parallel(r.slots) }
