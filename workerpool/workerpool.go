// Package workerpool runs jobs on a bounded number of reused goroutines, with a
// bounded queue in front of them.
//
//	err := pool.Submit(ctx, func(ctx context.Context) error { return send(ctx, mail) })
//
// Submit hands a job over and returns; Do waits for its result. An accepted job
// runs, or its own context cancels it before it starts, or Close or a Drain that ran out of
// time drops it. The pool counts and reports each case.
//
// A control law (package limit) decides how many jobs run at once, from a sample of the jobs,
// unless Config sets a number or GrowAt. Workers take jobs in order of priority, first come, first
// served within a priority. One job in 256 is taken from the least important priority that waits,
// against starvation. The law compares jobs of one priority with each other, and tells kinds of
// jobs apart if their contexts name one (spillway.WithKind).
//
// # Cost
//
// Once the pool is warm, a submission, a refusal and a Do allocate nothing ("go test ./workerpool
// -run Alloc"). "spillway lab pools" measures the time beside other pools and a channel, and
// docs/migrate/compare.md has results, losses included.
//
// # Pitfalls
//
//   - Without [Config.OnDone], a panic of a submitted job ends the process, as in a goroutine
//     without a pool. OnDone receives the panic instead. OnDone costs time on the worker.
//   - The context of a job is that of its submitter. A job that must outlive a request is submitted
//     with context.WithoutCancel(ctx).
//   - Do and Submit in a job of the same pool hold one worker while they wait for another. Once all
//     workers wait in this way, nothing ends, and Stats().State says so. A job passes work to its
//     own pool with [Pool.TrySubmit], and does the refused work itself. Or each layer of jobs has a
//     pool of its own.
//   - A job that waits in the queue may be dropped, so a sync.WaitGroup that a submitted job ends may
//     wait for ever. Jobs that belong together are calls of Do in goroutines of fanout.Map, which
//     returns the first error or all of them.
//   - Jobs share goroutines. A job that calls runtime.LockOSThread unlocks the thread before it
//     returns, or ends with runtime.Goexit (see [Job]).
//   - Profile labels of the context of a job cost up to four small allocations.
//
// # When not to use it
//
// A goroutine per job is often enough in Go. A pool pays when the number of jobs in progress must
// stay bounded: connections, memory, a backend that slows down. A pool does not make work faster.
// Jobs that must survive a crash need package jobqueue.
package workerpool

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/internal/handoff"
	"github.com/spillway-go/spillway/internal/priority"
	"github.com/spillway-go/spillway/limit"
)

// Job is one piece of work. ctx is the context that the job was submitted with. Submit a job that
// must outlive its caller with context.WithoutCancel(ctx).
//
// Jobs run one after the other on the same goroutine. A job therefore restores the goroutine state
// that it changes, or ends its goroutine with runtime.Goexit; the worker then continues on a new
// goroutine. Such state comes from runtime.LockOSThread, debug.SetPanicOnFault and regions of
// runtime/trace. A thread that stays locked slows down all later jobs of the worker. The later jobs
// also see changes of the thread: its namespace, its user, its signal mask. After runtime.Goexit,
// Go ends a locked thread with its goroutine. Profile labels are the exception: the pool sets them
// for each job, to the labels of the job's context (see runtime/pprof.Do), if any, and of the pool.
// Above 50,000 jobs a second, the pool sets labels only for some consecutive jobs of one context.
type Job func(ctx context.Context) error

const levels = priority.Levels

// Pool is a set of workers. A Pool is safe for concurrent use and must not be copied. A new pool
// has no goroutine. Make a Pool with New: submitting to the zero Pool panics. In testing/synctest make
// a Pool in each test: workers belong to the bubble of the call that started them.
//
// Package internal/handoff documents how jobs meet workers. The Pool adds contexts, callers that
// wait for results, times, and the control of how many jobs run and wait.
type Pool struct {
	cfg      Config
	base     time.Time
	labels   *labels // profile labels
	queue    handoff.Queue[entry]
	ctl      control
	refusals refusals

	ended    [limit.Unknown]atomic.Uint64 // jobs that ended with an error, by outcome
	panicked atomic.Uint64                // jobs
	gone     atomic.Uint64                // submissions whose context had already ended

	closedFor atomic.Uint32 // reason why the intake is closed; zero while open
	firstFor  atomic.Uint32 // reason of the first close

	free  sync.Pool             // *handoff.Waiter; per pool, because a channel belongs to its synctest bubble
	notes sync.Pool             // *note
	calls atomic.Pointer[[]any] // a *records[T] for each result type of Do

	unswept atomic.Bool // no search of the queue for cancelled jobs since the last look
	beating atomic.Bool // the next look is scheduled
	beatMu  sync.Mutex  // guards timer and writes to beating
	timer   *time.Timer
	beat    time.Duration // interval between looks
}

// entry is an accepted job. An entry has four words on purpose: the compiler keeps no larger struct
// in registers.
type entry struct {
	ctx  context.Context
	job  Job
	note *note // nil: no caller waits for the job, and the job is not timed
}

// note holds the extra data of a job that is timed or that a caller waits for.
type note struct {
	call   *call         // result record of the waiting caller, or nil
	timed  bool          // the submission time is known
	weight uint64        // number of jobs that the sample stands for; 0: not sampled
	at     time.Duration // submission time, if timed
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

// New returns a pool. New(Config{}) works without any number set. The error names the wrong field.
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

// mustBeMade panics for the zero Pool, and for the nil Pool that New returns with an error.
func (p *Pool) mustBeMade() {
	if p == nil || p.base.IsZero() {
		panic(notMade)
	}
}

const notMade = "workerpool: this Pool was not made by New: use workerpool.New(workerpool.Config{}), and look at its error"

var errNoJob = errors.New("workerpool: the job is nil")

func (p *Pool) now() time.Duration { return time.Since(p.base) }
