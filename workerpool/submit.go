package workerpool

import (
	"context"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/handoff"
	"github.com/spillway-go/spillway/internal/priority"
)

// ticket identifies an accepted job.
type ticket = handoff.Ticket

// Submit hands job over and returns when the pool has accepted it. Submit returns at once while a
// worker or a place in the queue is free; otherwise it waits, bounded by ctx and Config.MaxWait. It
// returns a *spillway.Rejection if the pool refuses the job, and ctx.Err() if ctx ends first; in
// both cases the job never runs. The pool refuses a job at once if the predicted wait and run time
// exceed the deadline of ctx. While arrivals exceed capacity, a job with a deadline does not wait
// for room.
//
// A job that calls Submit on its own pool holds one worker while it waits for another worker to
// make room. If all workers do so, they wait until their contexts end or MaxWait has passed, and
// Stats().State reports the stall. Inside a job, use TrySubmit and do refused work in place, or
// give each layer of jobs its own pool.
func (p *Pool) Submit(ctx context.Context, job Job) error {
	if p == nil || job == nil {
		return p.unfit()
	}
	if err := ctx.Err(); err != nil {
		p.gone.Add(1)
		return err
	}
	_, err := p.submit(ctx, job, nil, p.cfg.MaxWait >= 0)
	return err
}

// TrySubmit is Submit without the wait: when the queue is full it returns a *spillway.Rejection at
// once. TrySubmit does not check whether ctx has ended; the worker checks ctx before the job
// starts.
func (p *Pool) TrySubmit(ctx context.Context, job Job) error {
	if p == nil || job == nil {
		return p.unfit()
	}
	if p.queue.Full(0) {
		return p.refusals.refuse(p.ctl.fullness(0))
	}
	_, err := p.submit(ctx, job, nil, false)
	return err
}

// unfit returns the error for a nil job. It panics if the pool is nil or was not made by New.
func (p *Pool) unfit() error {
	p.mustBeMade()
	return errNoJob
}

// submit hands a job over. n is the note of a job with a waiting caller, else nil.
func (p *Pool) submit(ctx context.Context, job Job, n *note, mayWait bool) (ticket, error) {
	lv := priority.Level(spillway.PriorityFrom(ctx))
	if !mayWait && p.queue.Full(lv) {
		return ticket{}, p.refusals.refuse(p.ctl.fullness(lv))
	}
	if p.ctl.cost.Load() > 0 {
		if reason := p.ctl.hopeless(ctx, p.queue.Ahead(lv)); reason != 0 {
			return ticket{}, p.refusals.refuse(reason)
		}
	}
	e := entry{ctx, job, p.stamp(n)}
	// The zero Pool has no room, so submitSlowly gets its jobs and panics.
	state, t := p.queue.Offer(&e, lv)
	if state == handoff.Accepted {
		return t, nil
	}
	return p.submitSlowly(e, lv, state, mayWait)
}

// submitSlowly handles a job whose first offer was not accepted.
func (p *Pool) submitSlowly(e entry, lv int, state handoff.State, mayWait bool) (t ticket, err error) {
	p.mustBeMade()
	if state == handoff.Full && p.unswept.CompareAndSwap(true, false) && p.sweep() > 0 {
		if state, t = p.queue.Offer(&e, lv); state == handoff.Accepted {
			return t, nil
		}
	}
	reason := spillway.Reason(p.closedFor.Load())
	if state == handoff.Full {
		reason = p.ctl.tooLate(e.ctx, lv, p.cfg.MaxWait)
		if !mayWait {
			reason = p.ctl.fullness(lv)
		}
	}
	if reason == 0 {
		return p.wait(e, lv)
	}
	if e.note != nil && e.call() == nil {
		p.notes.Put(e.note)
	}
	return ticket{}, p.refusals.refuse(reason)
}

// wait blocks a submitter until its job is accepted or refused, its context ends, or MaxWait has
// passed.
func (p *Pool) wait(e entry, lv int) (t ticket, err error) {
	w, _ := p.free.Get().(*handoff.Waiter[entry])
	if w == nil {
		w = handoff.NewWaiter[entry]()
	}
	since := time.Duration(-1)
	if e.timed() {
		since = e.at() // an accepted job's note no longer belongs to the submitter
	} else if p.cfg.MaxWait > 0 {
		since = p.now()
	}
	ctx, notified, expired := e.ctx, true, false
	state := p.queue.Wait(w, e, lv, e.call() == nil)
	if state == handoff.Waiting {
		notified, expired = await(ctx, w.Ready(), p.cfg.MaxWait)
		expired = expired && ctx.Err() == nil
		state = p.queue.EndWait(w, notified, expired)
	} else if state == handoff.Closed {
		p.free.Put(w)
		return ticket{}, p.refusals.refuse(spillway.Reason(p.closedFor.Load()))
	}
	t = w.Ticket()
	p.free.Put(w)
	waited := time.Duration(0)
	if state != handoff.Accepted && since >= 0 {
		waited = p.now() - since
	}
	switch {
	case state == handoff.Closed:
		return ticket{}, afterWaiting(spillway.Reason(p.firstFor.Load()), waited, 0)
	case state == handoff.Left && expired:
		return ticket{}, afterWaiting(spillway.ReasonWaitTooLong, waited, p.ctl.drain())
	case state == handoff.Left:
		return ticket{}, ctx.Err()
	}
	return t, nil // the job's own context may still cancel the job before it starts
}

// await blocks until the submitter is notified, its context ends or most has passed.
func await(ctx context.Context, ready <-chan struct{}, most time.Duration) (notified, expired bool) {
	var timer <-chan time.Time
	if most > 0 {
		t := time.NewTimer(most)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-ready:
		return true, false
	case <-ctx.Done():
		return false, false
	case <-timer:
		return false, true
	}
}

// stamp records the submission time: for every job if OnDone is set, otherwise for sampled jobs.
func (p *Pool) stamp(n *note) *note {
	weight := p.ctl.every.Load()
	if weight > 1 && (!p.ctl.wanted.Load() || !p.ctl.wanted.CompareAndSwap(true, false)) {
		if weight = 0; p.cfg.OnDone == nil {
			return n
		}
	}
	if n == nil {
		if n, _ = p.notes.Get().(*note); n == nil {
			n = &note{}
		}
	}
	n.timed, n.weight, n.at = true, weight, p.now()
	return n
}

// sweep removes the queued jobs whose contexts have ended, to free their places, and returns their
// number.
func (p *Pool) sweep() int {
	all := p.queue.Purge(func(e *entry) bool { return over(e.ctx) })
	dead := make([]ended, 0, len(all))
	for _, e := range all {
		if c := e.call(); c == nil || c.begin() {
			dead = append(dead, ended{entry: e, err: e.ctx.Err()})
		} // else the leaving caller reports the job
	}
	defer p.queue.Finish(len(all))
	p.tellAll(dead)
	return len(all)
}

// over reports whether ctx has ended. The queue is locked during the call, and ctx may be a user's
// type. A context whose Err panics counts as not ended; Err panics again when the job is about to
// start.
func over(ctx context.Context) (ended bool) {
	defer func() {
		if recover() != nil {
			ended = false
		}
	}()
	return ctx.Err() != nil
}
