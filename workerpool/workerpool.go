// Package workerpool runs jobs on a bounded number of reused goroutines, with a
// bounded queue in front of them.
//
//	err := pool.Submit(ctx, func(ctx context.Context) error { return send(ctx, mail) })
//
// Submit hands a job over and returns; Do waits for its result; a Group waits
// for many. A job that was accepted runs, or is cancelled by its own context
// before it starts, or is dropped by a drain that ran out of time; each is
// counted and reported.
//
// A goroutine per job is often enough in Go. A pool pays when the number of
// jobs in progress must stay bounded: connections, memory, a backend that slows
// down. It does not make work faster.
//
// How many jobs run at once is found out by a control law (package limit), fed
// with a sample of the jobs, unless Config says a number. Jobs wait in strict
// order of priority, first come, first served within one. The law compares jobs with others
// of their priority, or of their kind too if their contexts say one (spillway.WithKind).
package workerpool

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/handoff"
)

// Job is one piece of work. ctx is the one it was submitted with: a job that
// must outlive its caller is submitted with context.WithoutCancel(ctx).
//
// Jobs run one after the other on the same goroutine, so a job puts back what it changes
// about its goroutine, or ends it by runtime.Goexit: then the worker goes on with a new one.
// That is so for runtime.LockOSThread, debug.SetPanicOnFault and regions of runtime/trace.
// A thread that stays locked slows all later jobs of the worker down, and they see what was
// done to the thread: its namespace, its user, its signal mask. After runtime.Goexit it
// ends with its goroutine, as Go does it. Profile labels are the exception: they are set for
// each job, to those of its context (see runtime/pprof.Do), if it has any, and those of the pool.
// Beyond 50,000 jobs a second they are set for some of those that follow one of the same context.
type Job func(ctx context.Context) error

const levels = handoff.Levels

// level is the queue of a priority, 0 for the most important.
func level(p spillway.Priority) int {
	return int(spillway.Critical - min(max(p, spillway.Low), spillway.Critical))
}

// Pool is a set of workers. It is safe for concurrent use; a Pool must not be
// copied. A new pool has no goroutine. Make it with New: submitting to the zero
// Pool panics.
//
// How jobs meet workers is the page of internal/handoff. The pool adds what that
// does not know: contexts, callers that wait for results, times, and the control
// that decides how many run and wait.
type Pool struct {
	cfg      Config
	base     time.Time
	labels   *labels // for profiles
	queue    handoff.Queue[entry]
	ctl      control
	refusals refusals

	failed, panicked atomic.Uint64 // jobs
	gone             atomic.Uint64 // submissions whose context had ended before

	closedFor atomic.Uint32 // why the intake is closed; zero while open
	firstFor  atomic.Uint32 // why it was closed the first time

	free  sync.Pool             // of *handoff.Waiter: the pool's own, because a channel belongs to its synctest bubble
	notes sync.Pool             // of *note
	calls atomic.Pointer[[]any] // records of Do

	unswept atomic.Bool // the queue was not searched for dead jobs since the last look
	beating atomic.Bool // a look is to come
	beatMu  sync.Mutex  // guards the timer and setting beating
	timer   *time.Timer
	beat    time.Duration // between looks
}

// entry is an accepted job. It is four words on purpose: larger structures are
// not kept in registers.
type entry struct {
	ctx  context.Context
	job  Job
	note *note // nil: no caller waits for the job and its time is not wanted
}

// note goes with some jobs.
type note struct {
	call   *call         // of the caller that waits for the job, or nil
	timed  bool          // at is when it was submitted
	weight uint64        // it is measured for so many jobs; 0: it is not
	at     time.Duration // the time, if timed
}

func (e *entry) call() *call {
	if e.note == nil {
		return nil
	}
	return e.note.call
}

func (e *entry) timed() bool { return e.note != nil && e.note.timed }
func (e *entry) at() time.Duration {
	if e.note == nil {
		return 0
	}
	return e.note.at
}

func (e *entry) sampled() bool { return e.note != nil && e.note.weight > 0 }

// New returns a pool. New(Config{}) works without a number. The error says
// which field is wrong.
func New(cfg Config) (*Pool, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	p := &Pool{cfg: cfg, base: time.Now(), labels: newLabels(cfg.Name)}
	p.beat = p.cfg.complete()
	p.unswept.Store(true)
	p.refusals.advise(0)
	p.ctl.configure(&p.cfg, &p.queue, &p.refusals)
	p.queue.Init(p.ctl.size, p.ctl.limit, p.startWorker)
	p.ctl.open()
	return p, nil
}

// made panics for the zero Pool, and for the nil Pool that New returns with an error.
func (p *Pool) made() {
	if p == nil || p.base.IsZero() {
		panic(notMade)
	}
}

const notMade = "workerpool: this Pool was not made by New: use workerpool.New(workerpool.Config{}), and look at its error"

var errNoJob = errors.New("workerpool: the job is nil")

func (p *Pool) now() time.Duration { return time.Since(p.base) }
