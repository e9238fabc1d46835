// Package jobqueue holds the words of durable jobs: work that survives a crash and
// may be done on another machine. It decides what becomes of a job after a run and
// stores nothing; jobqueue/jetstream does.
//
//	receipt, err := queue.Enqueue(ctx, jobqueue.Job{Key: orderID, Payload: body})
//
//	err := queue.Work(ctx, func(ctx context.Context, d *jobqueue.Delivery) error {
//		return send(ctx, d.Payload) // nil: done; an error: tried again later
//	})
//
// A job that Enqueue has acknowledged is run at least once. It may run again after a
// crash, or when a worker took longer than it said, so handlers must tolerate that:
// use Delivery.Key as an idempotency key. A crash counts as an attempt of all jobs that the
// process had in hand, those that it was about to run among them.
package jobqueue

import (
	"context"
	"errors"
	"time"

	"github.com/spillway-go/spillway"
)

var (
	// ErrUnavailable says that the engine could not be reached in time. Of Enqueue: the
	// job may have been stored all the same, so send it again with the same key.
	ErrUnavailable = errors.New("jobqueue: the engine cannot be reached")
	// ErrDiskFull says that the engine's disk, or what it may use of it, is full. Jobs are
	// taken again once there is room, which somebody has to make: those that end make little.
	ErrDiskFull = errors.New("jobqueue: the engine's disk is full")
	// ErrTooLarge says that a job is larger than the engine takes. Sending it again is
	// useless.
	ErrTooLarge = errors.New("jobqueue: the job is too large")
	// ErrNotFound says that there is no dead letter of this number.
	ErrNotFound = errors.New("jobqueue: no such dead letter")
	// ErrLost is the cause of a handler's context when the job is no longer this
	// worker's: it neither ended nor reported progress in time, or its queue was closed.
	// Another worker may be running it.
	ErrLost = errors.New("jobqueue: the job may be running elsewhere")
)

// Job is what is enqueued.
type Job struct {
	// Key makes enqueuing idempotent: of several jobs with one key, enqueued within the
	// engine's time of memory, the first is stored. Empty: a unique one is made. An engine that
	// starts again may have forgotten the keys of jobs that have ended, and knows those of jobs
	// that it still has. Purge forgets the keys of what it removes.
	Key string
	// Priority: jobs that are ready are handed out in strict order of it, but for a
	// small floor for the lowest. Zero, which is spillway.Normal, means that of the context.
	Priority spillway.Priority
	// Payload is the engine's from Enqueue on and must not be changed after it.
	Payload []byte
	// Delay is how long the job waits at least before its first run, by the engine's clock.
	// If that is set ahead the job may come earlier by as much, and if it is set back, later by
	// as much: not earlier, unless it was enqueued in the second in which that happened.
	Delay time.Duration
	// Header travels with the job: trace context, tenant, content type. Names are
	// case-sensitive. Those that begin with "Spillway-" or "Nats-" are the engine's.
	Header map[string]string
}

// Receipt says that a job is stored as durably as the engine was told to store it.
type Receipt struct {
	Key string // the job's, or the one made for it
	// Duplicate: a job with this key was stored before, and this one was not. Where the engine
	// did not answer at first, and a key was given, the job stored before may be this one.
	Duplicate bool
}

// Delivery is one run of a job. It must not be used after the handler has returned.
type Delivery struct {
	Job                // Delay is zero
	Attempt  int       // 1 for the first run; runs that a crash ended count, those that ended with ErrRejected or with Work do not
	Enqueued time.Time // when Enqueue stored it, by the engine's clock

	progress func(context.Context) error
}

// NewDelivery is for engines. Progress calls the function.
func NewDelivery(job Job, attempt int, enqueued time.Time, progress func(context.Context) error) *Delivery {
	return &Delivery{Job: job, Attempt: attempt, Enqueued: enqueued, progress: progress}
}

// Progress says that the job is still being worked on: it starts the time again after
// which the engine gives the job to another worker. Long jobs call it at least every
// third of that time. It returns ErrLost when it is too late, ErrUnavailable when the
// engine does not answer, and ctx's error when that ends first.
func (d *Delivery) Progress(ctx context.Context) error {
	if d.progress == nil {
		return nil
	}
	return d.progress(ctx)
}

// Handler does a job. Its context ends when the job is lost (see ErrLost) and when
// Work's ends; it carries the job's priority. The error decides:
//
//	nil                                  done
//	RetryAfter(wait, err)                again after wait
//	Dead(reason)                         a dead letter at once
//	matches spillway.ErrRejected         again after the advice in it; no attempt is counted
//	any other error, a panic, Goexit     again with back-off
//
// A job whose last permitted attempt failed becomes a dead letter, with the last error
// as its reason.
//
// Once the context of Work has ended, by a cancel or by a deadline, only nil, Dead and
// ErrRejected mean that. Any other end may come from the end of Work: the job is run again, and
// no attempt is counted.
type Handler func(ctx context.Context, d *Delivery) error

// DeadJob is a dead letter.
type DeadJob struct {
	ID       uint64 // its number in the queue; never used again
	Job      Job
	Reason   string
	Attempts int
	Died     time.Time // by the engine's clock
}

// Part says which jobs Purge removes.
type Part uint8

const (
	Waiting     Part = iota + 1 // ready and delayed jobs; one that is running ends, and is not tried again
	DeadLetters                 // all dead letters
)

// Depth counts jobs in an engine: all of them, whichever process brought them.
type Depth struct {
	Ready    int // may run now; with jetstream also delayed jobs at which no worker has looked yet
	Delayed  int // waiting for their first run or for the next attempt
	InFlight int // handed to workers; with jetstream also delayed jobs at which one has looked, as many as may run
}

// Stats is a snapshot of a queue. The depths are the engine's, read one after the other:
// a job on its way may be counted twice or not at all. The counters are those of this
// process since the queue was opened.
type Stats struct {
	Depth
	Dead       int
	Priorities map[spillway.Priority]Depth // where the engine knows; a priority without jobs may be missing

	Enqueued   uint64 // stored; without duplicates
	Duplicates uint64
	Refused    uint64 // Enqueue returned a *spillway.Rejection
	Done       uint64 // runs that ended their job; of two runs of one job, one
	Retried    uint64 // to be run again, and an attempt counted
	Deferred   uint64 // to be run again, rejected by what they need
	Buried     uint64 // became dead letters
	Lost       uint64 // runs whose end came too late, be it a success, or could not be told to the engine, and deferred jobs that went elsewhere meanwhile
	Running    int    // handlers of this process
}

// Queue is a queue of durable jobs. It is safe for concurrent use, by any number of
// processes at once where the engine allows that.
type Queue interface {
	// Enqueue stores a job and returns when it is stored. A full queue is a
	// *spillway.Rejection with QueueFull and advice, and if it is the disk that is full, the
	// error matches ErrDiskFull too; after Drain or Close it is Draining or Closed.
	// ErrTooLarge comes at once, ErrUnavailable after a bounded wait, and ctx's error when
	// that ends first; after the last two the job may be stored.
	Enqueue(ctx context.Context, job Job) (Receipt, error)

	// Work runs the handler for jobs until ctx ends, and then waits for the handlers it
	// has started. It returns ctx's error, nil after Drain or Close, and outlives an
	// engine that goes away and comes back. It may be called several times at once. A Work
	// that ends counts nothing: the jobs that it had in hand are given back.
	Work(ctx context.Context, handler Handler) error

	// Dead returns at most limit dead letters, the oldest first.
	Dead(ctx context.Context, limit int) ([]DeadJob, error)

	// Replay makes a dead letter a job again, ready, with no attempt counted. The error
	// matches ErrNotFound if there is no such dead letter.
	Replay(ctx context.Context, id uint64) error

	// Purge removes jobs, without running them, and returns how many. Their keys may be
	// enqueued again.
	Purge(ctx context.Context, part Part) (int, error)

	// Drain closes the intake of this process, lets Work take no more jobs, and waits for
	// the handlers that run. Jobs that wait stay in the engine. If ctx ends first the
	// error is a *spillway.DrainError; then handlers are left alone. It may be called again.
	Drain(ctx context.Context) error

	// Stats asks the engine for the depths. With an error it still has the counters of this
	// process, and Running.
	Stats(ctx context.Context) (Stats, error)

	// Close gives up what runs and returns when all handlers have: their contexts end,
	// and the engine gives their jobs to others, with no attempt counted. Call Drain before
	// it. It may be called again.
	Close() error
}
