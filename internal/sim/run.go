package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/refusal"
	"github.com/spillway-go/spillway/limit"
)

// run is one running simulation: a loop over events in time order.
type run struct {
	sc       *Scenario
	now      time.Duration
	events   eventQueue
	plans    []func()
	replicas []replica
	rotation rotation
	report   *Report

	arrivals, work, leaving, routes *rand.Rand // separate sources, so that draws for one do not change the others

	drawn     uint64 // number of first attempts so far
	attempts  uint64
	inBackend int
	tokens    []float64 // retries left in the budget of each client
	slabs     [][]call  // memory of all calls
	free      *call
	point     Point // current point of the timeline
	rejected  [refusal.Reasons]uint64
}

// reserve is how many retries a budget allows before the first success.
const reserve = 10

// Run simulates s and reports the result of every call. The same scenario always gives exactly the
// same report. The error names the invalid field of the scenario.
func Run(s Scenario) (Report, error) { return RunContext(context.Background(), s) }

// RunContext is Run for long scenarios. When ctx ends, RunContext returns its error without a
// report.
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
		leaving:  rand.New(rand.NewPCG(sc.Seed, 0xcafe)),
		routes:   rand.New(rand.NewPCG(sc.Seed, 0xf1ee)),
		tokens:   slices.Repeat([]float64{reserve}, max(sc.Retry.Clients, 1)),
	}
	if sc.Policy.build == nil {
		sc.Policy = Limiter(limit.NewAdaptive, Settings{})
	}
	if err := r.setUp(); err != nil {
		return Report{}, err
	}
	r.nextArrival()
	for _, c := range sc.Changes {
		r.after(c.At, func() { r.apply(c) })
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
		e.call.replica.backend.finish(e.call)
	case timer:
		r.replicas[e.gen].backend.finish(nil)
	case expire:
		r.expired(e.call)
	case overdue:
		if p := e.call.replica.policy; e.call.state == waiting && p.overdue(e.call) {
			r.refuse(e.call, spillway.ReasonWaitTooLong, 0)
			p.dispatch()
		}
	case planned:
		r.plans[e.gen]()
	}
}

func (r *run) nextArrival() {
	end := r.sc.Duration
	if at := max(r.sc.Arrivals.Next(r.drawn, r.now, end, r.arrivals), r.now); at < end {
		r.events.follow(arrivals, at, arrive, nil, 0)
	}
}

func (r *run) arrive(c *call) {
	r.attempts++
	c.id, c.at, c.deadline, c.leave = r.attempts, r.now, never, never
	if c.class.LeaveAfter != nil {
		c.leave = r.now + max(c.class.LeaveAfter.Draw(r.leaving), 1)
	}
	if c.class.Deadline > 0 {
		c.deadline = r.now + c.class.Deadline
	}
	r.point.Offered++
	if c.tries == 1 {
		r.point.Calls++
	}
	if c.tally != nil {
		c.tally.Offered++
		if c.tries > 1 {
			c.tally.Retries++
		}
	}
	r.event(c, callArrived)
	r.send(c)
}

// wait lets c wait until the policy admits or refuses it, at most until most.
func (r *run) wait(c *call, most time.Duration) {
	c.state = waiting
	r.event(c, callWaits)
	if c.waitsUntil() != never {
		r.expireLater(c)
	}
	if most < c.waitsUntil() || r.sc.Oblivious && most != never {
		r.events.follow(overdues, most, overdue, c, c.gen)
	}
}

// expireLater schedules the leaving of c's caller. Equal deadlines end in order.
func (r *run) expireLater(c *call) {
	if c.leave != never {
		r.events.add(c.waitsUntil(), expire, c, c.gen)
		return
	}
	r.events.follow(deadlines+c.kind%(lanes-deadlines), c.deadline, expire, c, c.gen)
}

func (r *run) admit(c *call) {
	watched := c.state == waiting // the leaving of the caller is already scheduled
	c.state, c.started = running, r.now
	r.event(c, callAdmitted)
	r.inBackend++
	r.report.Peak = max(r.report.Peak, r.inBackend)
	mayLeave := c.replica.backend.start(c)
	if !watched && c.waitsUntil() != never && (mayLeave || r.sc.Retry.Attempts > 1 || r.sc.Fleet.Replicas > 1) {
		r.expireLater(c)
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
			r.report.Classes[c.kind].Goodput++ // a count; finish makes it a rate
		}
		r.tokens[c.client] = min(r.tokens[c.client]+r.sc.Retry.Budget, reserve)
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
	p := c.replica.policy
	p.ended(c, r.known(c, o))
	if o == limit.Failed || late && !c.left {
		r.retry(c, 0)
	}
	r.recycle(c)
	p.dispatch()
}

// known returns the outcome that the service observes.
func (r *run) known(c *call, o limit.Outcome) limit.Outcome {
	if !r.sc.Oblivious || o == limit.Success || o == limit.Failed {
		return o
	}
	if c.fails {
		return limit.Failed
	}
	return limit.Success
}

// refuse ends an attempt that was not started.
func (r *run) refuse(c *call, reason spillway.Reason, after time.Duration) {
	if c.left { // the caller has left, so the call counts as Left
		r.gone(c)
		r.recycle(c)
		return
	}
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
		if r.sc.Oblivious {
			r.left(c)
			return
		}
		p := c.replica.policy
		if !p.leave(c) {
			return
		}
		r.gone(c)
		r.retry(c, 0)
		r.recycle(c)
		p.dispatch()
	case running:
		r.left(c)
		if !r.sc.Oblivious && c.replica.backend.leave(c) {
			r.ended(c)
		}
	}
}

// left records that the caller of c has left, while c stays in the service.
func (r *run) left(c *call) {
	c.left = true
	r.answered(c)
	r.retry(c, 0)
}

// gone counts a call whose caller left while it waited.
func (r *run) gone(c *call) {
	r.event(c, callLeft)
	if t := c.tally; t != nil {
		t.Left++
		t.Refusal.Record(int64(min(r.now, c.waitsUntil()) - c.at))
	}
}
