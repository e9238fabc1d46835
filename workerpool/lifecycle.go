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
	p.made()
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
	p.arm() // workers above the minimum are to be retired
	return nil
}

// Limit is how many jobs may run at once now.
func (p *Pool) Limit() int {
	p.made()
	p.ctl.mu.Lock()
	defer p.ctl.mu.Unlock()
	return p.ctl.limit
}

// Drain closes the intake, so that later jobs and submitters that wait are
// rejected as Draining, and waits until every accepted job has ended. When ctx
// ends first, jobs that have not started are dropped, and the error is a
// *spillway.DrainError; running jobs are left alone. It may be called again to
// wait on for those.
func (p *Pool) Drain(ctx context.Context) error {
	p.made()
	p.closedFor.CompareAndSwap(0, uint32(spillway.Draining))
	p.closeIntake(spillway.Draining)
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

// Close closes the intake as Closed and drops every job that has not started.
// It does not wait: running jobs finish, and the workers end after them. Closing
// again does nothing.
func (p *Pool) Close() {
	p.made()
	p.closedFor.Store(uint32(spillway.Closed))
	p.closeIntake(spillway.Closed)
	p.drop()
}

// closeIntake refuses submitters that wait and lets idle workers go.
func (p *Pool) closeIntake(reason spillway.Reason) {
	p.firstFor.CompareAndSwap(0, uint32(reason))
	p.queue.Close()
	p.beatMu.Lock()
	if p.timer != nil {
		p.timer.Stop()
	}
	p.beatMu.Unlock()
}

// drop takes every job out that has not started, tells of them, and returns how
// many there were.
func (p *Pool) drop() int {
	all := p.queue.Drop()
	reason := spillway.Reason(p.closedFor.Load())
	dropped := make([]ended, 0, len(all))
	for _, e := range all {
		if c := e.call(); c != nil && !c.begin() {
			continue // its caller is leaving, and reports it
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
