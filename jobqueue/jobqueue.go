// Package jobqueue defines the types and the retry policy of durable jobs. A durable job survives a
// crash and may run on another machine. This package decides what happens to a job after a run. It
// stores nothing: package jobqueue/jetstream keeps jobs in NATS JetStream, on a server of this
// process (jobqueue/embedded) or elsewhere, and jobqueue/memory keeps them in memory for tests.
// Package jobqueue/periodic enqueues jobs at set times.
//
//	receipt, err := queue.Enqueue(ctx, jobqueue.Job{Key: orderID, Payload: body})
//
//	err := queue.Work(ctx, func(ctx context.Context, d *jobqueue.Delivery) error {
//		return send(ctx, d.Payload) // nil: done; an error: tried again later
//	})
//
// A job that Enqueue has acknowledged runs at least once. It may run again after a crash, or when a
// worker exceeded its time limit, so handlers must tolerate repeated runs: use Delivery.Key as an
// idempotency key. [Handler] says what each of a handler's errors means. Jobs that failed for good
// are dead letters, for Dead, Replay and PurgeDead of [Queue] and for the command "spillway queue".
// [Metrics] shows a queue to operators; docs/operate/metrics.md says what to alert on.
//
// # Crashes
//
// A crash counts as an attempt of every job that the process held, including the jobs that it was
// about to run. A job that ends its process takes no other job along into the dead letters: if a
// job is at its last attempt and the end of the attempt before is unknown, the process takes no
// other job until that job has ended or is lost. With MaxAttempts: 1 there is no further attempt, and
// all jobs that the process held become dead letters. A panic is not a crash: only its own job fails.
//
// # Cost
//
// The module depends on NATS. The packages of the engines say what a job costs.
//
// # Pitfalls
//
//   - A job without a Priority has the priority of the context of Enqueue; in a handler, that is
//     the priority of the route. spillway.Normal is the zero value, so for a normal job pass
//     spillway.WithPriority(ctx, spillway.Normal).
//   - An HTTP handler may pass only a *spillway.Rejection from Enqueue to admissionhttp.Refuse.
//     After ErrUnavailable, and after the context's error, the job may be stored: answer with a 503
//     that says so, and let the client send the same key again.
//   - A limiter that all handlers share belongs in the engine's Limiter. If a handler calls the
//     limiter itself, it should return the rejection: the job then waits as long as the rejection
//     advises.
//   - One handler does all jobs of a queue. Jobs of several kinds say their kind in a Header of
//     yours, or each kind has a queue of its own, with its own MaxAttempts and MaxInFlight.
//   - In a rolling update an old process gets jobs that only the new version can do. A plain error
//     uses up their attempts: return NotHere for a kind of job that the handler does not know.
//   - A key spares work; it does not make a job run only once. Keys are forgotten after the
//     engine's deduplication window, by default two minutes. A restarted engine, such as an
//     embedded one after each deployment, knows only the keys of jobs that have not ended.
//
// # When not to use it
//
// For jobs that may be lost with the process, use package workerpool. If a job must exist if and only
// if a transaction of a database commits, enqueue the job with package jobqueue/outbox.
package jobqueue

import (
	"context"
	"errors"
	"time"

	"github.com/spillway-go/spillway"
)

var (
	// ErrUnavailable means that the engine could not be reached in time. If Enqueue returns it, the
	// job may have been stored all the same: send the job again with the same key.
	ErrUnavailable = errors.New("jobqueue: the engine cannot be reached")
	// ErrDiskFull means that the engine's disk, or its permitted share of the disk, is full. The
	// engine accepts jobs again once there is room. Somebody has to make room: jobs that end free
	// little.
	ErrDiskFull = errors.New("jobqueue: the engine's disk is full")
	// ErrTooLarge means that a job exceeds the engine's size limit. Sending the job again is
	// useless.
	ErrTooLarge = errors.New("jobqueue: the job is too large")
	// ErrNotFound means that no dead letter, or no refused job of package outbox, has the given number.
	ErrNotFound = errors.New("jobqueue: no such dead letter or refused job")
	// ErrLost is the cause of a handler's context when the worker has lost the job: the run neither
	// ended nor reported progress in time, or the queue was closed. Another worker may be running
	// the job.
	ErrLost = errors.New("jobqueue: the job may be running elsewhere")
)

// Job is a job to enqueue.
type Job struct {
	// Key makes enqueuing idempotent: of several jobs enqueued with one key within the engine's
	// deduplication window, only the first is stored. A key is UTF-8, of at most 512 bytes. If Key is
	// empty, Enqueue makes a unique key. A restarted engine may have forgotten the keys of ended jobs, but knows the keys of jobs that
	// it still holds. Purge and PurgeDead forget the keys of the jobs that they remove.
	Key string
	// Priority orders ready jobs: the engine hands them out in strict priority order, except for a
	// small floor that the lower priorities have in turn. Zero, which is spillway.Normal, means the priority of
	// the context.
	Priority spillway.Priority
	// Payload belongs to the engine once Enqueue is called. The caller must not change it
	// afterwards.
	Payload []byte
	// Delay is the minimum wait before the job's first run, by the engine's clock. If the clock is
	// set ahead, the job may run earlier by the same amount. If the clock is set back, the job may
	// run later by the same amount. It may then run early only if it was enqueued within the second
	// of the change.
	Delay time.Duration
	// Header travels with the job: trace context, tenant, content type. Names are case-sensitive.
	// Names that begin with "Spillway-" or "Nats-" are reserved for the engine.
	Header map[string]string
}

// Receipt confirms that a job is stored, as durably as the engine is configured to store jobs.
type Receipt struct {
	Key string // the job's key, or the generated one
	// Duplicate reports that a job with this key was already stored, so this job was not. If the
	// engine did not answer at first and the caller gave the key, the stored job may be this one.
	Duplicate bool
}

// Delivery is one run of a job. It must not be used after the handler has returned.
type Delivery struct {
	Job                // Delay is zero
	Attempt  int       // 1 for the first run; crashed runs count, runs ended by NotYet, NotHere, ErrRejected or the end of Work do not
	Enqueued time.Time // when Enqueue stored the job, by the engine's clock

	// Progress reports that the handler is still working on the job. It restarts the time after which
	// the engine gives the job to another worker. Long jobs call Progress at least every third of that
	// time. Progress returns ErrLost when it is too late, ErrUnavailable when the engine does not
	// answer, and ctx's error when ctx ends first. Engines set Progress; a test that makes a Delivery
	// for a handler sets what the handler calls.
	Progress func(ctx context.Context) error
}

// Handler does a job. Its context ends when the job is lost (see ErrLost) and when the context of
// Work ends. The context carries the job's priority. The returned error decides the job's fate:
//
//	nil                                  done
//	RetryAfter(wait, err)                again after wait
//	NotYet(wait, err)                    again after wait; no attempt is counted
//	NotHere(err)                         again by whichever process asks; no attempt is counted
//	Dead(reason)                         a dead letter at once
//	matches spillway.ErrRejected         as NotYet, after the rejection's advice
//	any other error, a panic, Goexit     again with back-off
//
// A job whose last permitted attempt failed becomes a dead letter, with the last error
// as its reason.
//
// Once the context of Work has ended, by a cancel or by a deadline, only nil, NotYet, NotHere, Dead
// and ErrRejected keep the meaning given above. Any other error, panic or Goexit may result from the end of Work:
// the job runs again, and no attempt is counted.
type Handler func(ctx context.Context, d *Delivery) error

// DeadJob is a dead letter.
type DeadJob struct {
	ID       uint64 // the dead letter's number in the queue; never reused
	Job      Job
	Reason   string
	Attempts int
	Died     time.Time // by the engine's clock
}

// Depth counts all jobs in an engine, whichever process enqueued them.
type Depth struct {
	Ready    int // may run now; with jetstream also delayed jobs that no worker has received yet
	Delayed  int // waiting for the first run or for the next attempt
	InFlight int // handed to workers; with jetstream also received delayed jobs, up to the number that may run at once
}

// Stats is a snapshot of a queue. The depths come from the engine and are read one after the other:
// a job that changes state meanwhile may be counted twice or not at all. The counters cover this
// process since it opened the queue.
type Stats struct {
	Depth
	Dead       int
	Priorities map[spillway.Priority]Depth // where the engine knows the depths; a priority without jobs may be missing

	Enqueued   uint64 // jobs stored, without duplicates
	Duplicates uint64
	Refused    uint64 // Enqueue returned a *spillway.Rejection
	Done       uint64 // runs that finished their job; two runs of one job count once
	Retried    uint64 // to run again, with an attempt counted
	Deferred   uint64 // to run again, with no attempt counted: NotYet, NotHere, or rejected by a resource that the job needs
	Buried     uint64 // became dead letters
	Lost       uint64 // late runs, even successes; ends that the engine did not confirm; deferred jobs that went elsewhere
	Running    int    // handlers that run in this process
}

// Queue is a queue of durable jobs. It is safe for concurrent use, also by several processes at
// once if the engine permits.
type Queue interface {
	// Enqueue stores a job and returns when the job is stored. A full queue yields a
	// *spillway.Rejection with ReasonQueueFull and a retry advice. If the disk is full, the error
	// matches ErrDiskFull too. After Drain or Close the reason is Draining or Closed. ErrTooLarge
	// comes at once, ErrUnavailable after a bounded wait, and ctx's error when ctx ends first.
	// After ErrUnavailable or ctx's error the job may be stored.
	Enqueue(ctx context.Context, job Job) (Receipt, error)

	// Work runs the handler for jobs until ctx ends, and then waits for the handlers it has
	// started. It returns ctx's error, and nil after Drain or Close. Work continues when the engine
	// goes away and comes back. It returns ErrUnavailable once the engine has ended the connection
	// for good. It may be called several times at once. A Work that ends counts no
	// attempts: it returns its jobs to the engine.
	Work(ctx context.Context, handler Handler) error

	// Dead returns at most limit dead letters, the oldest first.
	Dead(ctx context.Context, limit int) ([]DeadJob, error)

	// Replay turns a dead letter back into a ready job with no attempt counted. The error matches
	// ErrNotFound if there is no such dead letter.
	Replay(ctx context.Context, id uint64) error

	// Purge removes the ready and the delayed jobs without running them, and returns the number
	// removed, without the jobs that run in this process. A running job ends and is not retried. The
	// keys of removed jobs may be enqueued again.
	Purge(ctx context.Context) (int, error)

	// PurgeDead removes all dead letters and returns their number. Their keys may be enqueued again.
	PurgeDead(ctx context.Context) (int, error)

	// Drain closes the intake of this process, stops Work from taking more jobs, and waits for the
	// running handlers. Waiting jobs stay in the engine. If ctx ends first, Drain returns a
	// *spillway.DrainError and leaves the handlers running. Drain may be called again.
	Drain(ctx context.Context) error

	// Open reports whether the queue accepts jobs, for readiness probes such as
	// admissionhttp.Ready. It is false after Drain, after Close, and once the engine has ended the
	// connection for good. Then Work returns the error, and the process has to open the queue again
	// or to restart. Open asks nobody and stays true while the engine is away or the queue is full.
	Open() bool

	// Stats asks the engine for the depths. If it returns an error, the result still has this
	// process's counters and Running.
	Stats(ctx context.Context) (Stats, error)

	// Close ends the contexts of running handlers and returns when all handlers have returned. The
	// engine gives their jobs to other workers, with no attempt counted. Call Drain before Close.
	// Close may be called again.
	Close() error
}
