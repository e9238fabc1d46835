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
// order of priority, first come, first served within one.
package workerpool

import (
	"context"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/refusal"
	"github.com/spillway-go/spillway/internal/ring"
)

// Job is one piece of work. ctx is the one it was submitted with: a job that
// must outlive its caller is submitted with context.WithoutCancel(ctx).
type Job func(ctx context.Context) error

const (
	levels = int(spillway.Critical-spillway.Low) + 1
	// floor keeps the lowest priority from starving: of so many jobs that a worker
	// takes, one is of the lowest priority that waits.
	floor = 256
)

// mixed is set in Pool.used before a second level is.
const mixed = 1 << levels

// level is the queue of a priority, 0 for the most important.
func level(p spillway.Priority) int {
	return int(spillway.Critical - min(max(p, spillway.Low), spillway.Critical))
}

// Pool is a set of workers. It is safe for concurrent use; a Pool must not be
// copied. A new pool has no goroutine.
//
// Busy workers take jobs from the rings and submitters put them there without a
// lock. Everything rarer is decided under mu and published in state: that a
// worker has nothing to do, is woken or retired, that a submitter waits.
type Pool struct {
	cfg      Config
	queueCap int // jobs that may be accepted and wait; -1 in Config is 0 here
	base     time.Time
	labels   [levels]context.Context // for profiles

	// Read by every submission and every worker, written rarely.
	state   atomic.Uint64
	used    atomic.Uint32 // a bit for each level that ever had a job in its ring, and mixed
	every   atomic.Uint64 // one of so many jobs is sampled; a power of two
	rings   [levels]ring.Ring[entry]
	rooms   [levels]atomic.Int64 // so many jobs may be ahead of one that waits
	cost    atomic.Int64         // predicted wait for each job ahead, nanoseconds; 0: do not predict
	long    atomic.Int64         // how long a job runs, nanoseconds; with cost
	stale   atomic.Int64         // queued calls whose callers have left
	tries   atomic.Int64         // sweeps for ended contexts that are worth a try
	nays    atomic.Pointer[nays] // the refusals to hand out
	calls   atomic.Pointer[[]any]
	short   atomic.Bool  // half of the queue is worked off in a moment
	half    atomic.Int64 // of the queue; then submitters are let in again
	called  atomic.Bool  // a submitter was called up from the reserve, and does not run yet
	_       [128]byte
	pushing atomic.Int32 // who is pushing while several levels are used, see pushBeside
	_       [128]byte
	tally   tally

	mu       sync.Mutex
	closed   spillway.Reason // why the intake is closed; zero while open
	limit    int             // most jobs that may run
	low, top int             // least workers to keep, most that the limit may become
	active   int             // workers that hold a job
	workers  int             // goroutines
	parked   []*worker       // idle, the latest last
	front    [levels][]entry // what a sweep left, to be run before the rings; set aside there
	inFront  int             // so many
	waiting  [levels]waiters // submitters that wait for room
	nWaiting int
	reserve  waiters   // submitters whose jobs were accepted, not woken yet
	free     sync.Pool // of *waiter: the pool's own, because a channel belongs to its synctest bubble
	notes    sync.Pool // of *note
	accepted uint64    // without a ring
	dropped  uint64
	finished uint64        // Completed, as Stats said it last
	idle     chan struct{} // closed when a drained pool is empty
	timer    *time.Timer
	beating  bool
	beat     time.Duration // between looks

	ctl control
}

// entry is an accepted job. It is four words on purpose: larger structures are
// not kept in registers.
type entry struct {
	ctx  context.Context
	job  Job
	note *note // nil: nobody waits for the job or wants to know its time
}

// note goes with some jobs.
type note struct {
	call   *call         // who waits for the job, or nil
	timed  bool          // at is when it was accepted
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

// The state word: flags, and above them how many workers are active.
const (
	waking   = 1 << iota // a worker was woken or started, and does not run yet: at most one
	shaky                // a job is between a queue and a worker: count under the lock
	spare                // more workers may run
	over                 // more run than the limit allows
	fronted              // a sweep left jobs to be run before the rings
	queuing              // submitters wait for room
	reserves             // submitters whose jobs were accepted wait to be woken
	shut                 // the intake is closed
	asks                 // a sweep may find jobs that keep their places in vain

	stateBits = 9
)

// publish tells readers without the lock what holds now. The caller holds it.
func (p *Pool) publish(more uint64) {
	s := more | uint64(p.active)<<stateBits
	switch {
	case p.active < p.limit:
		s |= spare
	case p.active > p.limit:
		s |= over
	}
	if p.nWaiting > 0 {
		s |= queuing
	}
	if p.reserve.n > 0 {
		s |= reserves
	}
	if p.closed != 0 {
		s |= shut
	}
	if p.inFront > 0 {
		s |= fronted
	}
	for { // a worker that starts clears its flag at any time, who leaves sets asks
		old, stale := p.state.Load(), uint64(0)
		if !p.nothingStale() { // read after old: who left since makes the swap fail
			stale = asks
		}
		if p.state.CompareAndSwap(old, s|stale|old&waking) {
			if old&asks > stale && !p.nothingStale() { // or finds asks set and changes nothing
				p.state.Or(asks)
			}
			return
		}
	}
}

// New returns a pool. New(Config{}) works without a number. The error says
// which field is wrong.
func New(cfg Config) (*Pool, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	p := &Pool{cfg: cfg, base: time.Now(), labels: labelled(cfg.Name)}
	p.every.Store(1)
	p.tries.Store(sweeps)
	p.configure()
	p.publish(0)
	return p, nil
}

func (p *Pool) now() time.Duration { return time.Since(p.base) }

// ahead is how many jobs of the levels up to lv wait.
func (p *Pool) ahead(lv int) (n int) {
	used := p.used.Load() & (2<<lv - 1)
	for ; used != 0; used &= used - 1 {
		n += p.rings[bits.TrailingZeros32(used)].Held()
	}
	return n
}

// surely is how many jobs waited all the time that this took, at least. What one
// ring gets while another is read would make ahead count too many.
func (p *Pool) surely() int {
	var before, after, n int
	for i := range p.rings {
		before += p.rings[i].Aside()
	}
	for i := range p.rings {
		n += int(p.rings[i].Pushed())
	}
	for i := range p.rings {
		n -= int(p.rings[i].Popped())
		after += p.rings[i].Aside()
	}
	return n + min(before, after)
}

// queued is how many jobs wait, those included that nobody waits for any more.
func (p *Pool) queued() int { return p.ahead(levels - 1) }

// tally counts what happens outside the lock, apart from what is read there.
type tally struct {
	shards [shards]shard
	failed, panicked,
	gone, // context ended before the submission
	turned, // context ended while it waited for room
	cancelled atomic.Uint64 // accepted, context ended before the start
	_ [128]byte
}

// shards keep refusing callers from fighting over one counter.
const shards = 32

type shard struct {
	refused [spillway.Closed + 1]atomic.Uint64
	_       [128 - (spillway.Closed+1)*8%128]byte
}

func (t *tally) refusedFor(r spillway.Reason) (n uint64) {
	for i := range t.shards {
		n += t.shards[i].refused[r].Load()
	}
	return n
}

// nays are the refusals that hold now, for QueueFull and WaitTooLong, each with
// its advice spread over callers.
type nays [spillway.WaitTooLong + 1][spread]*spillway.Rejection

const spread = 32

func newNays(wait time.Duration) *nays {
	n := new(nays)
	for r := spillway.QueueFull; r <= spillway.WaitTooLong; r++ {
		for i := range n[r] {
			n[r][i] = refusal.Of(r).Near(wait, uint64(i))
		}
	}
	return n
}
