package sim

import (
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/internal/refusal"
	"github.com/spillway-go/spillway/limit"
)

// gated is the gate of the limiter in virtual time, without the concurrent code around it.
type gated struct {
	run     *run
	gate    *gate.Gate
	maxWait time.Duration
	advice  *refusal.Table // nil: callers ignore it
}

func (p *gated) arrive(c *call) {
	if c.waiter == nil { // made when needed: a Waiter is a third of a call's memory
		c.waiter = new(gate.Waiter)
	}
	*c.waiter = gate.Waiter{Owner: c}
	d := p.gate.Arrive(p.run.now, gate.Arrival{
		Cost: c.class.Cost, Priority: c.class.Priority, Deadline: p.deadline(c), Kind: p.gate.KindOf(c.class.Kind),
	}, c.waiter)
	if d.Preempted != nil {
		p.refuse(d.Preempted.Owner.(*call), spillway.ReasonPreempted)
	}
	switch d.Action {
	case gate.Admit:
		p.admit(c)
	case gate.Wait:
		p.run.wait(c, p.run.now+p.maxWait)
	case gate.Reject:
		p.refuse(c, d.Reason)
	}
}

// deadline returns the deadline that the service knows.
func (p *gated) deadline(c *call) time.Duration {
	if p.run.sc.Oblivious {
		return gate.Never
	}
	return c.deadline
}

func (p *gated) admit(c *call) {
	c.grant = p.gate.Started()
	p.run.admit(c)
}

func (p *gated) refuse(c *call, reason spillway.Reason) {
	var after time.Duration
	if p.advice != nil {
		after = p.advice.For(reason, p.gate.RetryAfter(c.class.Priority)).RetryAfter
	}
	p.run.refuse(c, reason, after)
}

func (p *gated) ended(c *call, o limit.Outcome) {
	p.gate.End(p.run.now, c.grant, o)
}

func (p *gated) leave(c *call) bool { return p.gate.Leave(p.run.now, c.waiter) }

func (p *gated) overdue(c *call) bool { return p.gate.Expire(c.waiter) }

func (p *gated) dispatch() {
	for {
		w, granted := p.gate.Next(p.run.now)
		switch {
		case w == nil:
			return
		case granted:
			p.gate.Taken(w, p.run.now-w.Since())
			p.admit(w.Owner.(*call))
		default:
			p.refuse(w.Owner.(*call), w.Late())
		}
	}
}

func (p *gated) load() (limit, inFlight, queued int) {
	return p.gate.Limit(), p.gate.InFlight(), p.gate.Queued()
}
