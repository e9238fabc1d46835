// Package workerpool runs jobs on a bounded number of reused goroutines, with a
// bounded queue in front of them.
//
//	err := pool.Submit(ctx, func(ctx context.Context) error { return send(ctx, mail) })
//
// Submit hands a job over and returns; Do waits for its result. A job that was
// accepted runs, or is cancelled by its own context before it starts, or is
// dropped by a drain that ran out of time; each is counted and reported.
//
// A goroutine per job is often enough in Go. A pool pays when the number of
// jobs in progress must stay bounded: connections, memory, a backend that slows
// down. It does not make work faster.
package workerpool

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/internal/fifo"
	"github.com/spillway-go/spillway/internal/rate"
	"github.com/spillway-go/spillway/internal/refusal"
)

// Job is one piece of work. ctx is the one it was submitted with: a job that
// must outlive its caller is submitted with context.WithoutCancel(ctx).
type Job func(ctx context.Context) error

// Config says what a Pool does. The zero value works.
type Config struct {
	// Name labels this pool in metrics and reports.
	Name string

	// MinWorkers stay when idle. MaxWorkers bounds how many jobs run at once;
	// zero means 8 x GOMAXPROCS. Workers start when a job needs one.
	MinWorkers, MaxWorkers int

	// QueueSize is how many accepted jobs may wait for a worker. Zero means 5
	// times MaxWorkers; negative means none: a job is accepted only when a
	// worker takes it at once.
	QueueSize int

	// MaxWait bounds how long Submit and Do wait for room in a full queue. Zero
	// means as long as their context allows; negative means not at all, as
	// TrySubmit does.
	MaxWait time.Duration

	// IdleTimeout is how long a worker above MinWorkers stays without a job.
	// Zero means 10 seconds.
	IdleTimeout time.Duration

	// OnDone is told of the end of every accepted job, on the goroutine that
	// ended it; while it runs, that worker does nothing else. Without it a
	// panic of a submitted job ends the process, as it would in a goroutine of
	// its own; with it, it is told of a *spillway.PanicError instead.
	OnDone func(Result)
}

// Result is the end of an accepted job.
type Result struct {
	// Err is what the job returned; a *spillway.PanicError if it panicked;
	// ErrGoexit if it called runtime.Goexit; the context's error if that ended
	// before the job started; a *spillway.Rejection if it was dropped.
	Err     error
	Started bool
	Waited  time.Duration // from acceptance to the start, or to the end of a job that did not start
	Ran     time.Duration
}

const defaultIdleTimeout = 10 * time.Second

// Pool is a set of workers. It is safe for concurrent use; a Pool must not be
// copied. A new pool has no goroutine.
type Pool struct {
	cfg  Config
	room int // in the queue
	base time.Time

	mu        sync.Mutex
	queue     fifo.Queue[entry]
	blocked   submitters // waiting for room, each holding its job
	parked    []*worker  // idle, the latest last
	workers   int
	running   int
	closed    spillway.Reason // why the intake is closed; zero while open
	idle      chan struct{}   // closed when a drained pool is empty
	counts    counts
	drain     rate.Meter
	refusals  *refusal.Table
	queueWait histogram.Histogram
	runTime   histogram.Histogram
}

// task is what a worker runs: a Job, or a call that somebody waits for.
type task interface {
	// run does the work. It may panic or call Goexit unless the task deals with
	// that itself.
	run(ctx context.Context) error
	// discard says that the work will not be done.
	discard(err error)
}

func (j Job) run(ctx context.Context) error { return j(ctx) }
func (j Job) discard(error)                 {}

// entry is an accepted job.
type entry struct {
	ctx  context.Context
	task task
	at   time.Duration // when it was accepted
}

// New returns a pool. New(Config{}) works without a number. The error says
// which field is wrong.
func New(cfg Config) (*Pool, error) {
	switch {
	case cfg.MaxWorkers < 0:
		return nil, fmt.Errorf("workerpool: MaxWorkers is %d: it must be positive, or zero for the default", cfg.MaxWorkers)
	case cfg.MinWorkers < 0:
		return nil, fmt.Errorf("workerpool: MinWorkers is %d: it cannot be negative", cfg.MinWorkers)
	case cfg.IdleTimeout < 0:
		return nil, fmt.Errorf("workerpool: IdleTimeout is %v: it cannot be negative (zero means %v)", cfg.IdleTimeout, defaultIdleTimeout)
	}
	if cfg.MaxWorkers == 0 {
		cfg.MaxWorkers = max(8*runtime.GOMAXPROCS(0), cfg.MinWorkers)
	}
	if cfg.MinWorkers > cfg.MaxWorkers {
		return nil, fmt.Errorf("workerpool: MinWorkers %d is above MaxWorkers %d", cfg.MinWorkers, cfg.MaxWorkers)
	}
	if cfg.QueueSize == 0 {
		cfg.QueueSize = 5 * cfg.MaxWorkers
	}
	if cfg.IdleTimeout == 0 {
		cfg.IdleTimeout = defaultIdleTimeout
	}
	return &Pool{
		cfg:      cfg,
		room:     max(cfg.QueueSize, 0),
		base:     time.Now(),
		refusals: refusal.NewTable(uint64(time.Now().UnixNano())),
	}, nil
}

func (p *Pool) now() time.Duration { return time.Since(p.base) }

// Submit hands job over and returns when the pool has accepted it: at once
// while a worker or a place in the queue is free, otherwise after a wait that
// ctx and Config.MaxWait bound. It returns a *spillway.Rejection when the job is
// refused and ctx.Err() when ctx ends first; then the job never runs.
func (p *Pool) Submit(ctx context.Context, job Job) error {
	if err := ctx.Err(); err != nil {
		p.abandoned()
		return err
	}
	return p.submit(ctx, job, p.cfg.MaxWait >= 0)
}

// TrySubmit is Submit without the wait: when the queue is full it returns a
// *spillway.Rejection at once. It does not read ctx, which travels to the job.
func (p *Pool) TrySubmit(ctx context.Context, job Job) error {
	return p.submit(ctx, job, false)
}

func (p *Pool) abandoned() {
	p.mu.Lock()
	p.counts.submitted++
	p.counts.cancelled++
	p.mu.Unlock()
}

func (p *Pool) submit(ctx context.Context, t task, mayWait bool) error {
	now := p.now()
	p.mu.Lock()
	p.counts.submitted++
	if p.closed != 0 {
		defer p.mu.Unlock()
		return p.reject(p.closed, now)
	}
	e := entry{ctx, t, now}
	if p.accept(e) {
		p.mu.Unlock()
		return nil
	}
	if !mayWait {
		defer p.mu.Unlock()
		return p.reject(spillway.QueueFull, now)
	}
	s := &submitter{entry: e, ready: make(chan struct{}, 1)}
	p.blocked.push(s)
	p.mu.Unlock()
	return p.await(ctx, s)
}

// accept gives e to a worker or to the queue. The caller holds the lock.
func (p *Pool) accept(e entry) bool {
	switch {
	case len(p.parked) > 0:
		w := p.parked[len(p.parked)-1]
		p.parked = p.parked[:len(p.parked)-1]
		p.running++
		w.hand(e)
	case p.workers < p.cfg.MaxWorkers:
		p.workers++
		p.running++
		go (&worker{pool: p}).work(e)
	case p.queue.Len() < p.room:
		p.queue.Push(e)
	default:
		return false
	}
	return true
}

// reject counts a refusal and makes it. The caller holds the lock.
func (p *Pool) reject(reason spillway.Reason, now time.Duration) error {
	p.counts.rejectedBy[reason]++
	return p.refusals.For(reason, p.retryAfter(now))
}

// retryAfter predicts when the backlog will have been worked off, from the
// measured completion rate. The caller holds the lock.
func (p *Pool) retryAfter(now time.Duration) time.Duration {
	perSecond := p.drain.PerSecond(now)
	if perSecond <= 0 || p.closed == spillway.Closed {
		return 0
	}
	return time.Duration(float64(p.queue.Len()+p.blocked.n+1) / perSecond * float64(time.Second))
}
