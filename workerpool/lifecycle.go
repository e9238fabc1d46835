package workerpool

import (
	"context"
	"fmt"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/refusal"
)

// Resize changes how many workers stay when idle, and the most jobs that may run at once. A
// maxWorkers of zero means the default of New. More workers start as jobs need them; excess workers
// take no further job and retire after Config.IdleTimeout. A law keeps deciding below the maximum.
func (p *Pool) Resize(minWorkers, maxWorkers int) error {
	p.mustBeMade()
	if maxWorkers == 0 && p.ctl.law == nil && p.cfg.GrowAt == 0 {
		return fmt.Errorf("workerpool: Resize to zero workers: this pool has no law to find out how many")
	}
	if err := checkWorkers(minWorkers, maxWorkers); err != nil {
		return err
	}
	if maxWorkers == 0 {
		maxWorkers = max(mostWorkers, minWorkers)
	}
	p.ctl.bound(minWorkers, maxWorkers)
	p.arm() // for the workers above the minimum to retire
	return nil
}

// Limit returns how many jobs may run at once now.
func (p *Pool) Limit() int {
	p.mustBeMade()
	p.ctl.mu.Lock()
	defer p.ctl.mu.Unlock()
	return p.ctl.limit
}

// Drain closes the intake and waits until every accepted job has ended. Later jobs and waiting
// submitters are rejected as Draining. If ctx ends first, Drain drops the jobs that have not
// started and returns a *spillway.DrainError; running jobs are left alone. Drain may be called
// again to wait for the running jobs.
func (p *Pool) Drain(ctx context.Context) error {
	p.mustBeMade()
	p.closedFor.CompareAndSwap(0, uint32(spillway.ReasonDraining))
	p.closeIntake(spillway.ReasonDraining)
	drained := p.queue.Drained()
	select {
	case <-drained:
		return nil
	default:
	}
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
	}
	dropped := p.drop()
	running := p.queue.Picture().Active
	if dropped == 0 && running == 0 {
		return nil
	}
	return &spillway.DrainError{Dropped: dropped, Running: running, Cause: ctx.Err()}
}

// Close closes the intake and drops every job that has not started. Later jobs and waiting
// submitters are rejected as Closed. Close does not wait: running jobs finish, and the workers end
// after them. Closing again does nothing.
func (p *Pool) Close() {
	p.mustBeMade()
	p.closedFor.Store(uint32(spillway.ReasonClosed))
	p.closeIntake(spillway.ReasonClosed)
	p.drop()
}

// closeIntake refuses waiting submitters and ends idle workers.
func (p *Pool) closeIntake(reason spillway.Reason) {
	p.firstFor.CompareAndSwap(0, uint32(reason))
	p.queue.Close()
	p.beatMu.Lock()
	if p.timer != nil {
		p.timer.Stop()
	}
	p.beatMu.Unlock()
}

// drop removes every job that has not started, reports the jobs, and returns their number.
func (p *Pool) drop() int {
	all := p.queue.Drop()
	reason := spillway.Reason(p.closedFor.Load())
	dropped := make([]ended, 0, len(all))
	for _, e := range all {
		if c := e.call(); c != nil && !c.begin() {
			continue // the leaving caller reports the job
		}
		rej := refusal.Of(reason)[0]
		if e.timed() {
			rej.Waited = p.now() - e.note.at
		}
		dropped = append(dropped, ended{entry: e, err: &rej})
	}
	defer p.queue.Finish(len(all))
	p.tellAll(dropped)
	return len(all)
}
