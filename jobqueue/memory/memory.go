// Package memory is a jobqueue.Queue that keeps its jobs in memory. It suits tests and jobs that
// may be lost with the process. Its API and behaviour match the durable queue.
//
// The queue starts no goroutine and uses only the clock of package time. So in testing/synctest, an
// hour of delays, back-offs and silent workers passes in a moment.
//
// # Cost
//
// Each call takes one lock. Each job wakes every waiting worker.
//
// # Pitfalls
//
//   - Dead letters count against MaxQueued, and none is dropped. A queue whose dead letters are
//     never purged becomes full.
//   - The Payload of a job is not copied.
//
// # When not to use it
//
// For jobs that must survive the process, use package jobqueue/jetstream.
package memory

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/internal/engine"
)

// queue is a queue in memory.
type queue struct {
	cfg    Config
	shared *shared

	// closing ends when the queue stops taking jobs.
	closing context.Context
	close   context.CancelFunc

	// shared.mu guards the fields below.
	refusal spillway.Reason // why Enqueue refuses jobs; 0: it accepts them
	runs    map[*run]bool   // handlers that have not returned
	idle    chan struct{}   // closed once runs is empty; nil: no goroutine waits for it
	stats   jobqueue.Stats  // the counters
}

// shared holds the jobs and the channel that wakes waiters.
type shared struct {
	mu      sync.Mutex
	core    *core
	changed chan struct{} // closed when a job may be ready; nil: no goroutine waits
}

var _ jobqueue.Queue = (*queue)(nil)

// Open returns an empty queue. It starts no goroutines.
func Open(cfg Config) (jobqueue.Queue, error) {
	q, err := newQueue(cfg)
	if err != nil {
		return nil, err
	}
	return q, nil
}

func newQueue(cfg Config) (*queue, error) {
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	return open(cfg, &shared{core: newCore(cfg)}), nil
}

// another returns another queue on the jobs of q, like the queue of another process. The returned
// queue has its own drain, close and counters. It keeps working after q is closed.
func (q *queue) another() *queue { return open(q.cfg, q.shared) }

func open(cfg Config, s *shared) *queue {
	q := &queue{cfg: cfg, shared: s, runs: map[*run]bool{}}
	q.closing, q.close = context.WithCancel(context.Background())
	return q
}

// wake wakes all goroutines that wait for a job. The caller holds the lock.
func (s *shared) wake() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// waiting returns the channel that wake closes. The caller holds the lock.
func (s *shared) waiting() <-chan struct{} {
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// Enqueue stores a job. It never waits.
func (q *queue) Enqueue(ctx context.Context, job jobqueue.Job) (jobqueue.Receipt, error) {
	if err := ctx.Err(); err != nil {
		return jobqueue.Receipt{}, err
	}
	if err := q.check(job); err != nil {
		return jobqueue.Receipt{}, err
	}
	if job.Priority == spillway.Normal {
		job.Priority = spillway.PriorityFrom(ctx)
	}
	if job.Key == "" {
		job.Key = rand.Text()
	}
	job.Header = maps.Clone(job.Header)
	q.shared.mu.Lock()
	defer q.shared.mu.Unlock()
	if q.refusal != 0 {
		q.stats.Refused++
		return jobqueue.Receipt{}, &spillway.Rejection{Reason: q.refusal}
	}
	duplicate, full := q.shared.core.enqueue(time.Now(), job)
	switch {
	case full != nil:
		q.stats.Refused++
		return jobqueue.Receipt{}, full
	case duplicate:
		q.stats.Duplicates++
	default:
		q.stats.Enqueued++
		q.shared.wake()
	}
	return jobqueue.Receipt{Key: job.Key, Duplicate: duplicate}, nil
}

// check returns why the queue can never accept a job.
func (q *queue) check(job jobqueue.Job) error {
	switch size := sizeOf(job); {
	case len(job.Payload) > q.cfg.MaxPayload:
		return fmt.Errorf("%w: its payload has %d bytes, at most %d are taken", jobqueue.ErrTooLarge, len(job.Payload), q.cfg.MaxPayload)
	case size > mostBytes:
		return fmt.Errorf("%w: it has %d bytes, and the whole queue takes %d", jobqueue.ErrTooLarge, size, mostBytes)
	}
	if err := engine.CheckJob(job); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	return nil
}

// enter locks the jobs, unless ctx has ended or the queue is closed.
func (q *queue) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	q.shared.mu.Lock()
	if q.refusal == spillway.ReasonClosed {
		q.shared.mu.Unlock()
		return &spillway.Rejection{Reason: spillway.ReasonClosed}
	}
	return nil
}

// Dead returns at most limit dead letters, the oldest first.
func (q *queue) Dead(ctx context.Context, limit int) ([]jobqueue.DeadJob, error) {
	if err := q.enter(ctx); err != nil {
		return nil, err
	}
	defer q.shared.mu.Unlock()
	dead := q.shared.core.dead
	letters := make([]jobqueue.DeadJob, 0, min(max(limit, 0), len(dead)))
	for _, it := range dead[:cap(letters)] {
		job := it.job
		job.Header = maps.Clone(job.Header)
		letters = append(letters, jobqueue.DeadJob{ID: it.id, Job: job, Reason: it.reason, Attempts: it.attempts, Died: it.died})
	}
	return letters, nil
}

// Replay turns a dead letter back into a job.
func (q *queue) Replay(ctx context.Context, id uint64) error {
	if err := q.enter(ctx); err != nil {
		return err
	}
	defer q.shared.mu.Unlock()
	if !q.shared.core.replay(time.Now(), id) {
		return fmt.Errorf("%w: %d", jobqueue.ErrNotFound, id)
	}
	q.shared.wake()
	return nil
}

// Purge removes the jobs that wait and returns how many.
func (q *queue) Purge(ctx context.Context) (int, error) { return q.purge(ctx, false) }

// PurgeDead removes all dead letters and returns how many.
func (q *queue) PurgeDead(ctx context.Context) (int, error) { return q.purge(ctx, true) }

func (q *queue) purge(ctx context.Context, dead bool) (int, error) {
	if err := q.enter(ctx); err != nil {
		return 0, err
	}
	defer q.shared.mu.Unlock()
	return q.shared.core.purge(time.Now(), dead), nil
}

// Stats returns the depths of the jobs, over all queues that share them, and this queue's counters.
func (q *queue) Stats(ctx context.Context) (jobqueue.Stats, error) {
	err := q.enter(ctx)
	if err != nil {
		q.shared.mu.Lock()
	}
	defer q.shared.mu.Unlock()
	s := q.stats
	s.Running = len(q.runs)
	if err == nil {
		s.Depth, s.Priorities = q.shared.core.depths(time.Now())
		s.Dead = len(q.shared.core.dead)
	}
	return s, err
}

// Drain closes the intake and waits for the running handlers.
func (q *queue) Drain(ctx context.Context) error {
	q.shut(spillway.ReasonDraining)
	select {
	case <-q.ended():
		return nil
	case <-ctx.Done():
	}
	q.shared.mu.Lock()
	defer q.shared.mu.Unlock()
	if len(q.runs) == 0 {
		return nil
	}
	return &spillway.DrainError{Running: len(q.runs), Cause: ctx.Err()}
}

// Close hands running jobs to other workers, ends the handlers' contexts and waits for the
// handlers.
func (q *queue) Close() error {
	q.shut(spillway.ReasonClosed)
	q.shared.mu.Lock()
	runs := slices.Collect(maps.Keys(q.runs))
	for _, r := range runs {
		q.lost(r, q.shared.core.settle(time.Now(), r.id, engine.Settlement{Fate: engine.Defer})) // counts no attempt
	}
	q.shared.mu.Unlock()
	for _, r := range runs {
		r.end(jobqueue.ErrLost)
	}
	<-q.ended()
	return nil
}

// shut closes the intake. A closed queue stays closed.
func (q *queue) shut(reason spillway.Reason) {
	q.shared.mu.Lock()
	q.refusal = max(q.refusal, reason)
	q.shared.mu.Unlock()
	q.close()
}

// Open reports whether the queue accepts jobs.
func (q *queue) Open() bool {
	q.shared.mu.Lock()
	defer q.shared.mu.Unlock()
	return q.refusal == 0
}

// ended returns a channel that is closed once no handler runs.
func (q *queue) ended() <-chan struct{} {
	q.shared.mu.Lock()
	defer q.shared.mu.Unlock()
	if q.idle == nil {
		q.idle = make(chan struct{})
		if len(q.runs) == 0 {
			close(q.idle)
		}
	}
	return q.idle
}
