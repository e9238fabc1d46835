package workerpool

import (
	"context"
	"fmt"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/refusal"
)

// Resize changes how many workers stay when idle and how many jobs may run at
// once, at most; a maximum of zero is the default of New. More start as jobs
// need them; too many end after the job they run. A law keeps deciding below
// the maximum.
func (p *Pool) Resize(minWorkers, maxWorkers int) error {
	if maxWorkers == 0 && p.ctl.law == nil && p.cfg.GrowAt == 0 {
		return fmt.Errorf("workerpool: Resize to zero workers: this pool has no law to find out how many")
	}
	if err := checkWorkers(minWorkers, maxWorkers); err != nil {
		return err
	}
	if maxWorkers == 0 {
		maxWorkers = max(mostWorkers, minWorkers)
	}
	p.ctl.mu.Lock()
	defer p.ctl.mu.Unlock()
	p.mu.Lock()
	p.low, p.top = minWorkers, maxWorkers
	want := maxWorkers
	if p.ctl.law != nil {
		want = p.ctl.law.Limit()
	} else if p.cfg.GrowAt > 0 {
		want = p.limit
	}
	p.relimit(want)
	p.arm()
	p.publish(0)
	p.mu.Unlock()
	p.refill()
	return nil
}

// Limit is how many jobs may run at once now.
func (p *Pool) Limit() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.limit
}

// relimit sets the limit within its bounds. The caller holds the lock, and calls
// refill once it has released it.
func (p *Pool) relimit(n int) { p.limit = min(max(n, p.low, p.ctl.least, 1), p.top) }

// refill uses room that a higher limit has made.
func (p *Pool) refill() {
	p.mu.Lock()
	woken := p.admit()
	p.wakeAndUnlock()
	wakeAll(woken)
}

// Drain closes the intake, so that later jobs and submitters that wait are
// rejected as Draining, and waits until every accepted job has ended. When ctx
// ends first, jobs that have not started are dropped, and the error is a
// *spillway.DrainError; running jobs are left alone. It may be called again to
// wait on for those.
func (p *Pool) Drain(ctx context.Context) error {
	p.mu.Lock()
	woken := p.closeIntake(spillway.Draining)
	if p.empty() {
		p.mu.Unlock()
		wakeAll(woken)
		return nil
	}
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	idle := p.idle
	p.mu.Unlock()
	wakeAll(woken)

	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	dropped := p.drop()
	running := p.active
	p.settle()
	p.mu.Unlock()
	p.tellAll(dropped)
	if len(dropped) == 0 && running == 0 {
		return nil
	}
	return &spillway.DrainError{Dropped: len(dropped), Running: running, Cause: ctx.Err()}
}

// Close closes the intake as Closed and drops every job that has not started.
// It does not wait: running jobs finish, and the workers end after them. Closing
// again does nothing.
func (p *Pool) Close() {
	p.mu.Lock()
	woken := p.closeIntake(spillway.Closed)
	dropped := p.drop()
	p.settle()
	p.mu.Unlock()
	wakeAll(woken)
	p.tellAll(dropped)
}

// closeIntake refuses submitters that wait and lets idle workers go. The caller
// holds the lock, and wakes the submitters afterwards.
func (p *Pool) closeIntake(reason spillway.Reason) (woken *waiter) {
	if p.closed == spillway.Closed {
		return nil
	}
	p.closed = reason
	for i := range p.rings {
		p.rings[i].Close()
	}
	last := &woken
	for w := p.release(); w != nil; w = p.release() {
		*last, last = w, &w.prev
	}
	for lv := range p.waiting {
		for w := p.waiting[lv].head; w != nil; w = p.waiting[lv].head {
			p.unqueue(w)
			w.refused = reason
			*last, last = w, &w.prev
		}
	}
	for _, w := range p.parked {
		w.exit = true
		w.wake <- struct{}{}
		p.workers--
	}
	p.parked = nil
	if p.timer != nil {
		p.timer.Stop()
	}
	p.publish(0)
	return woken
}

// drop takes every job out that has not started. The caller holds the lock, and
// tells of them once it has given it back.
func (p *Pool) drop() (dropped []ended) {
	for lv := range p.rings {
		all := p.front[lv]
		p.front[lv] = nil
		p.rings[lv].Release(len(all))
		for e := (entry{}); p.rings[lv].Pop(&e); {
			all = append(all, e)
		}
		for _, e := range all {
			if c := e.call(); c != nil && !c.begin() {
				p.stale.Add(-1)
				continue
			}
			rej := refusal.Of(p.closed)[0]
			if e.timed() {
				rej.Waited = p.now() - e.note.at
			}
			dropped = append(dropped, ended{entry: e, err: &rej})
		}
	}
	p.inFront = 0
	p.dropped += uint64(len(dropped))
	p.publish(0)
	return dropped
}

// settle tells drains when nothing is left. The caller holds the lock.
func (p *Pool) settle() {
	if p.idle != nil && p.empty() {
		close(p.idle)
		p.idle = nil
	}
}

func (p *Pool) empty() bool { return p.active == 0 && p.nWaiting == 0 && p.queued() == 0 }
