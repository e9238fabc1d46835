// Package jobqueuetest checks that an engine keeps the promises of package jobqueue: what becomes
// of failed jobs, priorities, bounds, heartbeats, drain and close, and the end of every wait.
// Engines call Run in their tests, in real time or in virtual time:
//
//	jobqueuetest.Run(t, jobqueuetest.Engine{New: begin, Largest: 1 << 10, TooLarge: 1<<10 + 1, Around: synctest.Test})
//
// In real time, the checks run in parallel and poll; only a check that fails takes long.
//
// The package kills no process. Crashes of the durable engine are tested in
// jobqueue/internal/proof, and what only JetStream has, such as deleted streams, in its package.
//
// For the tests of a service, use package jobqueue/memory instead.
package jobqueuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/limiter"
)

// Options are the settings of an engine for a check. Zero means the engine's default.
type Options struct {
	MaxQueued   int // limit of the jobs of one priority
	MaxInFlight int
	AckWait     time.Duration
	Dedupe      time.Duration
	Policy      jobqueue.Policy
	Limiter     *limiter.Limiter
}

// Engine is an engine to check.
type Engine struct {
	// New makes an engine without jobs, which ends with the test. Each call of open opens a queue
	// as another process would. restart restarts the store of the jobs with its data, as a deployment
	// does: all queues are closed before, and open is called afterwards. Nil means that jobs do not
	// survive a restart.
	New func(t *testing.T, o Options) (open func() jobqueue.Queue, restart func())
	// Largest is the size in bytes of a payload that the engine accepts. TooLarge is the size of a
	// payload that it refuses.
	Largest, TooLarge int
	// Around runs a check, with synctest.Test for virtual time. Nil means a plain call.
	Around func(t *testing.T, check func(t *testing.T))
}

// checks lists all checks. An engine must pass each of them.
var checks = []struct {
	name    string
	options Options
	check   func(w *world)
}{
	{"JobsAreDoneOnce", Options{}, doneOnce},
	{"AFailedJobIsTriedAgainAfterABackoff", quick(5), backoff},
	{"RetryAfterWaits", quick(5), retryAfter},
	{"TheLastAttemptBuries", quick(3), lastAttempt},
	{"DeadBuriesAtOnceAndReplayRevives", quick(3), deadAndReplayed},
	{"ARejectionIsNoAttempt", quick(2), rejected},
	{"NotYetIsNoAttempt", quick(1), notYet},
	{"JobsThatMustWaitHoldUpNoOther", elsewhere, crowded},
	{"ARejectedJobGoesToWhoeverAsks", elsewhere, rejectedHere},
	{"AJobThatIsNotForHereGoesToWhoeverAsks", elsewhere, notHere},
	{"APanicIsAFailedAttempt", quick(2), panics},
	{"GoexitIsAFailedAttempt", quick(2), exits},
	{"AnErrorThatPanicsIsAFailedAttempt", Options{}, badErrors},
	{"ADelayedJobIsNotEarly", Options{}, delayed},

	{"AKeyIsStoredOnce", Options{}, keyOnce},
	{"AKeyIsForgotten", Options{Dedupe: 500 * time.Millisecond}, keyForgotten},
	{"PurgeForgetsTheKeysOfWhatItRemoves", quick(1), keysPurged},
	{"ARestartKeepsTheKeysOfJobs", Options{}, keysKept},
	{"KeysAreMade", Options{}, keysMade},

	{"PrioritiesAreStrict", Options{MaxInFlight: 1}, priorities},
	{"NoPriorityIsStarved", Options{MaxInFlight: 1}, floor},
	{"TheContextsPriorityCounts", Options{}, contextPriority},

	{"AFullQueueRefusesAndTakesAgain", Options{MaxQueued: 5}, full},
	{"AnOversizedJobIsRefused", Options{}, oversized},
	{"ABadJobIsAnError", Options{}, badJobs},
	{"MaxInFlightHoldsOverAllWorkers", Options{MaxInFlight: 4}, inFlight},
	{"TheLimiterHolds", Options{}, limited},

	{"HeartbeatsKeepAJob", Options{AckWait: 2 * time.Second, Policy: jobqueue.Policy{MaxAttempts: 100}}, heartbeats},
	{"ASilentWorkerLosesItsJob", Options{AckWait: 2 * time.Second, Policy: jobqueue.Policy{MaxAttempts: 100}}, silent},
	{"EveryWaitEndsWithItsContext", Options{}, contexts},
	{"WorkEndsWithItsContext", Options{}, workEnds},
	{"ALateSuccessIsDoneOnceAndLost", Options{AckWait: 2 * time.Second, Policy: jobqueue.Policy{MaxAttempts: 100}}, lateSuccess},
	{"ALastRunThatIsLostIsBuriedAndCounted", Options{AckWait: 2 * time.Second, Policy: jobqueue.Policy{MaxAttempts: 1}}, lastRunLost},
	{"AWorkThatEndsCountsNothing", Options{MaxInFlight: 1, Policy: jobqueue.Policy{MaxAttempts: 1}}, endedWork},
	{"DrainLetsJobsEndAndLeavesTheRest", Options{MaxInFlight: 1}, drain},
	{"ADrainThatIsTooShortSaysWhatRuns", Options{}, drainTooShort},
	{"NothingAcknowledgedIsLostToADrain", Options{}, drainRace},
	{"CloseGivesJobsToOthers", Options{AckWait: time.Hour, Policy: jobqueue.Policy{MaxAttempts: 1}}, closing},
	{"PurgeForgets", quick(1), purge},
	{"PurgeDoesNotCountWhatRuns", elsewhere, purgedRunning},
	{"WhatWasPurgedDoesNotRun", elsewhere, purgedHeld},
}

// quick permits the given number of attempts, with short pauses between them.
func quick(attempts int) Options {
	return Options{Policy: jobqueue.Policy{MaxAttempts: attempts, Backoff: 50 * time.Millisecond, MaxBackoff: 100 * time.Millisecond}}
}

// elsewhere permits one attempt, and few jobs at once.
var elsewhere = Options{MaxInFlight: 4, Policy: jobqueue.Policy{MaxAttempts: 1}}

// Run runs every check, each with its own engine.
func Run(t *testing.T, e Engine) {
	around := e.Around
	if around == nil {
		around = func(t *testing.T, check func(*testing.T)) { check(t) }
	}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			if e.Around == nil {
				t.Parallel() // in real time the checks mostly wait
			}
			around(t, func(t *testing.T) {
				w := &world{T: t, engine: e, options: c.options}
				w.open, w.restart = e.New(t, c.options) // some checks replace it by an engine with other options
				c.check(w)
			})
		})
	}
}

// world is a running check.
type world struct {
	*testing.T
	engine  Engine
	options Options
	open    func() jobqueue.Queue
	restart func()
}

// queue opens a queue and closes it at the end.
func (w *world) queue() jobqueue.Queue {
	q := w.open()
	w.end("Close returns", func() {
		if err := q.Close(); err != nil {
			w.Errorf("Close: %v", err)
		}
	})
	return q
}

// end calls f at the end of the check. A handler of a check that has failed may wait for ever: the
// check then ends without f.
func (w *world) end(what string, f func()) {
	w.Cleanup(func() {
		ended := make(chan struct{})
		go func() { f(); close(ended) }()
		await.Receive(w, what, ended)
	})
}

// put enqueues a job and fails the test if the queue refuses it.
func (w *world) put(q jobqueue.Queue, job jobqueue.Job) jobqueue.Receipt {
	w.Helper()
	receipt, err := q.Enqueue(w.Context(), job)
	if err != nil {
		w.Fatalf("Enqueue: %v", err)
	}
	return receipt
}

// keys enqueues a job for each key.
func (w *world) keys(q jobqueue.Queue, keys ...string) {
	w.Helper()
	for _, key := range keys {
		w.put(q, jobqueue.Job{Key: key})
	}
}

// work starts a worker. stop stops the worker and returns the error of Work. The end of the test
// also stops the worker.
func (w *world) work(q jobqueue.Queue, handler jobqueue.Handler) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- q.Work(ctx, handler) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	w.end("Work returns", func() { _ = stop() })
	return stop
}

func (w *world) stats(q jobqueue.Queue) jobqueue.Stats {
	w.Helper()
	s, err := q.Stats(w.Context())
	if err != nil {
		w.Fatalf("Stats: %v", err)
	}
	return s
}

// ready waits until n jobs are ready, and returns the Stats. An engine may count a job a moment
// after it acknowledges the job.
func (w *world) ready(q jobqueue.Queue, n int) (s jobqueue.Stats) {
	w.Helper()
	w.until(fmt.Sprintf("%d jobs are ready", n), func() bool {
		s = w.stats(q)
		return s.Ready == n
	})
	return s
}

// until waits until cond is true.
func (w *world) until(what string, cond func() bool) {
	w.Helper()
	await.True(w, what, cond)
}

// empty waits until no job is left, except for dead letters. Many jobs on a busy disk may take
// long, so empty fails only if their number stops changing.
func (w *world) empty(q jobqueue.Queue) {
	w.Helper()
	for left := w.stats(q).Depth; left != (jobqueue.Depth{}); {
		before := left
		w.until(fmt.Sprintf("one of those that are left is done: %+v", before), func() bool {
			left = w.stats(q).Depth
			return left != before
		})
	}
}

// buried waits for n dead letters and returns them.
func (w *world) buried(q jobqueue.Queue, n int) []jobqueue.DeadJob {
	w.Helper()
	var dead []jobqueue.DeadJob
	w.until(fmt.Sprintf("%d dead letters", n), func() (found bool) {
		var err error
		if dead, err = q.Dead(w.Context(), n+1); err != nil {
			w.Fatalf("Dead: %v", err)
		}
		return len(dead) >= n
	})
	if len(dead) > n {
		w.Fatalf("%d dead letters, want %d: %v", len(dead), n, dead)
	}
	return dead
}

// journal records the deliveries to handlers.
type journal struct {
	mu   sync.Mutex
	runs []entry
}

type entry struct {
	key     string
	attempt int
	at      time.Time
}

func (j *journal) add(d *jobqueue.Delivery) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.runs = append(j.runs, entry{d.Key, d.Attempt, time.Now()})
}

func (j *journal) all() []entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.runs)
}

func (j *journal) len() int { return len(j.all()) }

func (j *journal) keys() (keys []string) {
	for _, e := range j.all() {
		keys = append(keys, e.key)
	}
	return keys
}

func (j *journal) attempts() (n []int) {
	for _, e := range j.all() {
		n = append(n, e.attempt)
	}
	return n
}

var errFailed = errors.New("the handler failed")
