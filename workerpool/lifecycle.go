package workerpool

import (
	"context"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
)

// Drain closes the intake, so that later jobs and blocked submitters are
// rejected as Draining, and waits until every accepted job has ended. When ctx
// ends first, jobs that have not started are dropped, and the error is a
// *spillway.DrainError; running jobs are left alone. It may be called again to
// wait on for those.
func (p *Pool) Drain(ctx context.Context) error {
	p.mu.Lock()
	p.closeIntake(spillway.Draining)
	if p.empty() {
		p.mu.Unlock()
		return nil
	}
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	idle := p.idle
	p.mu.Unlock()

	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	dropped := p.drop()
	running := p.running
	p.settle()
	p.mu.Unlock()
	p.report(dropped)
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
	p.closeIntake(spillway.Closed)
	dropped := p.drop()
	p.settle()
	p.mu.Unlock()
	p.report(dropped)
}

// closeIntake refuses blocked submitters and lets idle workers go. The caller
// holds the lock.
func (p *Pool) closeIntake(reason spillway.Reason) {
	if p.closed == spillway.Closed {
		return
	}
	p.closed = reason
	for s := p.blocked.head; s != nil; s = p.blocked.head {
		p.blocked.remove(s)
		p.counts.rejectedBy[reason]++
		s.dropped = true
		s.ready <- struct{}{}
	}
	for _, w := range p.parked {
		close(w.wake)
		p.workers--
	}
	p.parked = nil
}

// drop takes every job that has not started. The caller holds the lock, and
// reports them once it has given it back.
func (p *Pool) drop() (dropped []entry) {
	for e, ok := p.queue.Pop(); ok; e, ok = p.queue.Pop() {
		dropped = append(dropped, e)
	}
	p.counts.dropped += uint64(len(dropped))
	return dropped
}

func (p *Pool) report(dropped []entry) {
	now := p.now()
	for _, e := range dropped {
		p.mu.Lock()
		err := p.refusals.Waited(p.closed, 0, now-e.at)
		p.mu.Unlock()
		e.task.discard(err)
		p.tell(Result{Err: err, Waited: now - e.at})
	}
}

// counts is the ledger of every job.
type counts struct {
	submitted, started, completed, failed, panicked, cancelled, dropped uint64
	rejectedBy                                                          [spillway.Closed + 1]uint64
}

// Stats is a consistent picture of a pool. At any time Submitted = Completed +
// Rejected + Cancelled + Dropped + Queued + Running + Blocked.
type Stats struct {
	Name                  string
	MaxWorkers, QueueSize int

	Workers int // goroutines
	Idle    int // of them, without a job
	Running int // jobs taken by a worker
	Queued  int // accepted jobs waiting for a worker
	Blocked int // submitters waiting for room

	Submitted  uint64
	Started    uint64
	Completed  uint64 // started and ended, however they ended
	Failed     uint64 // of the completed: with an error, a panic or Goexit
	Panicked   uint64 // of the failed
	Rejected   uint64 // over all reasons
	RejectedBy map[spillway.Reason]uint64
	Cancelled  uint64 // their own context ended before they started
	Dropped    uint64 // accepted, and dropped by Drain or Close

	QueueWait *histogram.Histogram // of started jobs, nanoseconds
	RunTime   *histogram.Histogram // of jobs that returned, nanoseconds
}

// Stats returns the counts so far. The picture is a copy and costs some
// microseconds; call it at the pace of a metrics scrape, not per job.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.counts
	s := Stats{
		Name: p.cfg.Name, MaxWorkers: p.cfg.MaxWorkers, QueueSize: p.room,
		Workers: p.workers, Idle: len(p.parked), Running: p.running, Queued: p.queue.Len(), Blocked: p.blocked.n,
		Submitted: c.submitted, Started: c.started, Completed: c.completed, Failed: c.failed, Panicked: c.panicked,
		RejectedBy: map[spillway.Reason]uint64{}, Cancelled: c.cancelled, Dropped: c.dropped,
		QueueWait: p.queueWait.Clone(), RunTime: p.runTime.Clone(),
	}
	for _, r := range spillway.Reasons() {
		if n := c.rejectedBy[r]; n > 0 {
			s.RejectedBy[r] = n
			s.Rejected += n
		}
	}
	return s
}
