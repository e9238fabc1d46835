package memory

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/internal/engine"
	"github.com/spillway-go/spillway/limiter"
)

// run is one run of a handler.
type run struct {
	id     uint64
	ctx    context.Context // the handler's context
	job    jobqueue.Job
	tries  int
	since  time.Time // when the job was enqueued
	permit limiter.Permit

	// shared.mu guards the fields below.
	until time.Time // the run loses the job at this time, unless it ends or reports progress
	timer *time.Timer
	end   context.CancelCauseFunc
}

// Work runs the handler for jobs.
func (q *queue) Work(ctx context.Context, handler jobqueue.Handler) error {
	if handler == nil {
		return errors.New("memory: Work needs a handler")
	}
	var handlers sync.WaitGroup
	defer handlers.Wait()
	taking, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(q.closing, stop)()
	for {
		r := q.next(ctx, taking)
		if r == nil {
			if q.closing.Err() != nil {
				return nil
			}
			return ctx.Err()
		}
		handlers.Go(func() { q.handle(r, handler) })
	}
}

// next waits for a job and a permit. It returns nil once taking or parent has ended. Handler
// contexts derive from parent, because handlers outlive a drain. If parent has a user-defined type,
// a goroutine cancels taking, so taking ends later than parent. next therefore checks parent too.
// Otherwise it would keep retaking a job that was handed back when parent ended.
func (q *queue) next(parent, taking context.Context) *run {
	for taking.Err() == nil && parent.Err() == nil {
		priority, ok := q.await(taking)
		if !ok {
			return nil
		}
		var permit limiter.Permit
		if q.cfg.Limiter != nil {
			var err error
			if permit, err = q.cfg.Limiter.AcquireWith(taking, limiter.Request{Priority: priority}); err != nil {
				pause(taking, advice(err))
				continue
			}
		}
		if r := q.begin(parent, taking, permit); r != nil {
			return r
		}
		permit.Release() // another worker took the job, or parent has ended
	}
	return nil
}

// await waits until there is a job, and returns its priority.
func (q *queue) await(taking context.Context) (spillway.Priority, bool) {
	for {
		q.shared.mu.Lock()
		now := time.Now()
		l, ok := q.shared.core.next(now)
		if ok || taking.Err() != nil {
			q.shared.mu.Unlock()
			return spillway.Low + spillway.Priority(l), taking.Err() == nil
		}
		changed := q.shared.waiting()
		var due <-chan time.Time
		if at, some := q.shared.core.nextDue(); some && at.After(now) {
			due = time.After(at.Sub(now))
		}
		q.shared.mu.Unlock()
		select {
		case <-changed:
		case <-due:
		case <-taking.Done():
		}
	}
}

// limiterAgain is the longest pause before a limiter that refused is asked again. The limiter's own
// advice, up to a minute, is for remote callers.
const limiterAgain = time.Second

// advice returns how long to pause before asking a limiter that refused again.
func advice(err error) time.Duration {
	if r, ok := errors.AsType[*spillway.Rejection](err); ok {
		return min(max(r.RetryAfter, 10*time.Millisecond), limiterAgain)
	}
	return 0
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// begin takes a job for a handler. It returns nil if no job is left, or parent has ended.
func (q *queue) begin(parent, taking context.Context, permit limiter.Permit) *run {
	if parent.Err() != nil {
		return nil
	}
	r := &run{permit: permit}
	r.ctx, r.end = context.WithCancelCause(parent) // parent is user code: call it without the lock
	if !q.claim(r, taking) {
		r.end(nil)
		return nil
	}
	return r
}

// claim assigns the next job to a run, and reports whether there is one.
func (q *queue) claim(r *run, taking context.Context) bool {
	q.shared.mu.Lock()
	defer q.shared.mu.Unlock()
	if taking.Err() != nil || q.refusal != 0 {
		return false
	}
	now := time.Now()
	it := q.shared.core.take(now)
	if it == nil {
		return false
	}
	r.id, r.job, r.tries, r.since = it.run, it.job, it.attempts, it.enqueued
	r.job.Header = maps.Clone(r.job.Header)
	r.until = now.Add(q.cfg.AckWait)
	r.timer = time.AfterFunc(q.cfg.AckWait, func() { q.expire(r) })
	q.runs[r] = true
	return true
}

// handle runs the handler to completion.
func (q *queue) handle(r *run, handler jobqueue.Handler) {
	defer r.permit.Release()
	d := &jobqueue.Delivery{Job: r.job, Attempt: r.tries, Enqueued: r.since, Progress: func(ctx context.Context) error { return q.progress(ctx, r) }}
	engine.Run(r.ctx, handler, d, func(err error) {
		r.permit.Done(err)
		q.settle(r, err)
	})
}

// settle ends a run according to its handler's error.
func (q *queue) settle(r *run, err error) {
	v := engine.Settle(q.cfg.Policy, err, r.tries)
	if r.ctx.Err() != nil {
		v = engine.SettleEnded(q.cfg.Policy, err)
	}
	defer r.end(nil) // cancels the handler's context without the lock
	q.shared.mu.Lock()
	defer q.shared.mu.Unlock()
	r.timer.Stop()
	if q.shared.core.settle(time.Now(), r.id, v) {
		switch v.Fate {
		case engine.Finish:
			q.stats.Done++
		case engine.Retry:
			q.stats.Retried++
		case engine.Defer:
			if v.After > 0 { // otherwise Work has ended
				q.stats.Deferred++
			}
		case engine.Bury:
			q.stats.Buried++
		}
		q.shared.wake()
	}
	delete(q.runs, r)
	if len(q.runs) == 0 && q.idle != nil {
		close(q.idle)
	}
}

// expire takes the job from a handler that missed its deadline, and cancels the handler's context.
func (q *queue) expire(r *run) {
	if q.late(r) {
		r.end(jobqueue.ErrLost)
	}
}

// late takes the job from a run that is past its deadline. It reports whether the deadline has
// passed.
func (q *queue) late(r *run) bool {
	q.shared.mu.Lock()
	defer q.shared.mu.Unlock()
	if left := time.Until(r.until); left > 0 { // the handler has reported progress meanwhile
		r.timer.Reset(left)
		return false
	}
	had, buried := q.shared.core.lose(time.Now(), r.id)
	if buried {
		q.stats.Buried++
	}
	q.lost(r, had)
	return true
}

// lost counts a run that has lost its job, if the run held the job. The caller holds the lock, and
// ends the run's context after unlocking.
func (q *queue) lost(r *run, had bool) {
	if had {
		q.stats.Lost++
		q.shared.wake()
	}
	r.timer.Stop()
}

// progress restarts a handler's time limit.
func (q *queue) progress(ctx context.Context, r *run) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	q.shared.mu.Lock()
	defer q.shared.mu.Unlock()
	if q.shared.core.running[r.id] == nil {
		return jobqueue.ErrLost
	}
	r.until = time.Now().Add(q.cfg.AckWait)
	r.timer.Reset(q.cfg.AckWait)
	return nil
}
