// Package limiter decides whether work may run now: the work is admitted, waits a
// bounded time, or is rejected with a reason and advice.
//
//	err := lim.Do(ctx, func(ctx context.Context) error { return call(ctx) })
//
// Do is the usual way: Do releases the slot even if the work panics. If the work
// does not fit into one function, acquire a Permit:
//
//	permit, err := lim.Acquire(ctx)
//	if err != nil {
//		return err // nothing was started, nothing to release
//	}
//	defer permit.Release() // also when the work panics
//	err = call(ctx)
//	permit.Done(err) // finished: now it is a sample
//	return err
//
// A control law (package limit) finds out how much may run at once. Callers wait in
// strict order of priority, first come, first served within a priority. A caller
// that would wait too long is refused at once. The times of work of the same kind
// predict how long work will take: see Request.Kind.
//
// # Calls inside calls
//
// Work that holds a permit must not wait for a second permit of the same limiter. Examples
// are Do inside Do, a handler behind a middleware that calls its database through the
// middleware's limiter, and a service that calls another service which calls back. Under
// light load such calls succeed. Once outer work holds all slots, it waits for slots that
// only outer work can free, and little or nothing is done. A limiter cannot detect nested
// calls: to carry the permit in a context would cost one more allocation for each admission,
// and work in several goroutines is bounded only by the permits that each goroutine acquires.
// So:
//
//   - Give each layer a limiter of its own: one in front of the handlers, one in front of each
//     dependency that the handlers call.
//   - Acquire once for a whole piece of work, with its Cost. Pass the Permit to inner
//     functions, or let inner functions assume that their caller has acquired.
//   - Where services call each other in a circle, give the inner calls a limiter of their
//     own, chosen by route, by header or by key (Keyed).
//
// Stats().State names nested calls as a possible cause when work waits while no work ends or
// nearly all work is lost.
//
// # Calls that only wait
//
// A slot stands for use of what is scarce, and work that only waits uses nothing. Say so where the
// program knows:
//
//   - Work that waits for its client calls [Permit.Pause] and [Permit.Resume]. The middlewares do.
//   - Work that is long by nature is [Request.Long] from its admission on, or calls [Permit.Long].
//
// What nobody says, the default law finds out. When no slot is free and work is overdue, the limiter
// parks some of that work, which runs on without its slots, and serves others in its place. If those
// others end in their usual time, the parked work loads nothing that they need: the work stays parked
// until it ends, and more may be parked. If not, the backend itself hangs or is full, and the work
// takes its slots again. So a poll, a lock or a dependency that hangs seldom stops others for longer than a
// second, and a backend that hangs is not flooded. Stats().Parked counts such work, and State names its kinds, best if each
// route or method has its own [Request.Kind]. [Config.MaxAside] bounds what runs without slots. See
// docs/adr/0021-a-held-slot-is-no-load.md.
//
// # Cost
//
// A limiter has no goroutine. An admission without a wait, its end, and an immediate
// refusal allocate nothing ("go test ./limiter -run Alloc"). "make bench
// BENCH='AcquireDone|Reject'" prints their times beside a mutex and a channel, and
// docs/lab/results.md has the figures of one machine. A channel alone is several times
// cheaper.
//
// # Pitfalls
//
//   - A permit that is never ended holds its slot for ever. Do always ends its permit.
//     After Acquire, write defer permit.Release() in the next line. [Config.LeakAfter]
//     finds permits that were forgotten.
//   - Pass Done the unchanged error of the work. A deadline is a sample, and a failure is
//     not.
//   - Work that ignores its context keeps its slot after its caller has left.
//   - Work of two lengths with the same priority and similar deadlines is one kind,
//     unless each length has its own [Request.Kind]. Name the kinds, or give each length
//     its own limiter. docs/adr/0006-a-free-slot-is-given.md shows how kinds decide.
//   - Streams take slots until trials have parked them, unless they are [Request.Long]. Bound
//     streams by a limiter of their own.
//   - When a [Keyed] evicts a limiter, its counts are lost, unless metrics.Keyed has the
//     family: metrics.Keyed adds up the counts of evicted limiters.
//
// # When not to use it
//
// A limiter is of no use where nothing is scarce. Requests per second for each customer
// need a rate limiter. For a fixed bound within one function, errgroup is smaller.
package limiter

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/internal/processors"
	"github.com/spillway-go/spillway/internal/refusal"
	"github.com/spillway-go/spillway/limit"
)

// Request describes what an acquisition asks for. The zero value takes priority, cost and
// kind from the context, as Acquire does. Fields may be added.
type Request struct {
	// Priority overrides the priority of the context, unless Priority is zero, which is
	// spillway.Normal. To force Normal, pass the context
	// spillway.WithPriority(ctx, spillway.Normal).
	Priority spillway.Priority
	// Cost is how many slots the work takes. Zero means the cost of the context
	// (spillway.WithCost), or one slot. Work that costs more than the whole limit runs alone.
	// While more important work keeps slots in use, the limiter now and then gathers free
	// slots for large work, for about as long as slow work takes. Meanwhile arrivals with
	// enough time wait until the large work has run; all other arrivals are admitted. So if
	// most arrivals have too little time, large work of low priority runs only when nothing
	// else runs.
	Cost int
	// Kind overrides the kind of the context, unless Kind is empty. Work is compared with
	// work of the same kind and priority (see spillway.WithKind). Work without a kind is
	// compared with work of the same priority and order of magnitude of the deadline.
	Kind string
	// Long marks work that is long by nature: a stream, an export, a watch. Long work is
	// admitted like other work, when there is room for its cost. Then long work holds no
	// slot, gives the law no sample and enters no prediction: the limit bounds short work,
	// and streams in all slots would leave no room for short work. So this limiter does
	// not bound how much long work runs: give long work a limiter of its own, with
	// limit.NewFixed, in which it is not Long. Drain waits for long work, Stats counts it
	// as LongInFlight, and long work is not reported as a leak. Call Permit.Long for work
	// that turns out to be long while it runs.
	Long bool
	// DryRun makes the limiter decide about the work and count the decision, but admit the
	// work at once, although the mode is Enforce. Use DryRun to enforce for a part of the
	// callers first. Once the limiter drains or is closed, the work is refused like other
	// work.
	DryRun bool
	// OverShare says that the caller has more than its fair share of the running work. The
	// work is admitted when there is room. Work that would have to wait or be refused is
	// refused at once, as Quota. Config.MaxRefused does not count such refusals.
	OverShare bool

	noWait bool // see TryAcquire
}

// Limiter bounds how much work runs at once. A Limiter is safe for concurrent use and
// has no goroutine. Create a Limiter with New: the zero Limiter panics with a message.
// A Limiter must not be copied.
type Limiter struct {
	// What each arrival reads without the lock comes first, apart from what the lock guards: refusals must not slow
	// down admitted work. What is seldom touched comes last, because a family has many limiters.
	mode     atomic.Uint32
	shut     atomic.Bool  // the intake is closed
	aside    bool         // work may run without its slots: time alone may free slots
	quiet    bool         // an admission needs no call site, no observer and no look at a user-defined law
	ownLaw   bool         // the law is the limiter's choice, not the operator's
	ruled    bool         // time alone changes the limit, or there is a lease
	limit    atomic.Int64 // copy of the gate's limit, for readers without the lock
	due      atomic.Int64 // time of the next check of signals and leaks
	memos    memos
	gate     *gate.Gate
	observer *Observer
	epoch    epoch
	careful  *careful // wrapper of a user-defined law, else nil; set once
	door     door

	mu      sync.Mutex
	last    time.Duration // latest time seen: the gate's time never goes back
	running slots
	ended   atomic.Pointer[slot] // ends handed to the lock holder, latest first, linked by next
	woken   *waiter              // waiters to notify after the unlock, linked by next
	changes []limit.Decision     // not yet reported to the observer
	waiters waiters
	idle    chan struct{} // closed when the last work ends; nil unless Drain waits

	name      string
	maxWait   time.Duration
	leakAfter time.Duration
	signals   []Signal
	polling   sync.Mutex    // held while the user's signals run; locked before mu
	nextPoll  time.Duration // guarded by polling
	follow    followers     // guarded by polling
	followed  atomic.Bool   // there are followers
	pauses    atomic.Bool   // some work has ever paused
	law       limit.Law
	refusal   refusal.Table
	nextLook  time.Duration // earliest time of the next look for slots that others may have
	grew      time.Duration // when last a slot was allocated or a caller queued
	leaked    uint64
	*history  // noHistory until the limit changes, or something may overrule the law
}

// New returns a limiter. New(Config{}) works: no number is required. The error names
// every wrong field, one per line.
func New(cfg Config) (*Limiter, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	l := &Limiter{
		name: cfg.Name, maxWait: min(cmp.Or(cfg.MaxWait, defaultMaxWait), longestWait),
		leakAfter: cfg.LeakAfter, signals: slices.Clone(cfg.Signals),
		law: cfg.Law, ownLaw: cfg.Law == nil, history: &noHistory, observer: &nobody,
	}
	if cfg.SlowStart > 0 {
		l.beginHistory()
		l.over.rampFor = cfg.SlowStart
	}
	began := time.Now()
	l.epoch.start(began)
	if cfg.MaxWait == NoMaxWait {
		l.maxWait = forever
	}
	if l.ownLaw {
		l.law = lawFor(cfg.Mode)
	} else {
		l.law, l.careful = carefully(cfg.Law)
	}
	if cfg.Observer != nil {
		observer := *cfg.Observer
		l.observer = &observer
	}
	l.quiet = l.leakAfter == 0 && l.observer.Admitted == nil && l.observer.WouldReject == nil && l.careful == nil
	l.aside = cfg.MaxAside >= 0
	l.gate = gate.New(gate.Config{
		Law: l.law, QueueSize: cmp.Or(cfg.QueueSize, defaultQueue), MaxWait: l.maxWait, MaxRefused: cfg.MaxRefused,
		MaxAside: cmp.Or(cfg.MaxAside, defaultAside), Parks: l.ownLaw && l.maxWait < forever,
	})
	l.bound()
	l.refusal = *refusal.NewTable(uint64(began.UnixNano()))
	l.mode.Store(uint32(cfg.Mode))
	l.limit.Store(int64(l.gate.Limit()))
	l.noteRule()
	if l.ownLaw && !cfg.IgnoreProcessors {
		if l.door.monitor = processors.Of(began); cfg.MaxRefused > 0 {
			l.door.minShare = 1 - cfg.MaxRefused
		}
	}
	l.due.Store(int64(forever))
	if len(cfg.Signals) > 0 || cfg.LeakAfter > 0 || l.door.monitor != nil {
		l.due.Store(0)
	}
	l.raise()
	return l, nil
}

// Name returns Config.Name.
func (l *Limiter) Name() string { return l.name }

// Acquire waits until the work may run, with the priority, the cost and the kind that ctx
// carries. Acquire returns a *spillway.Rejection when the work is refused, and ctx.Err()
// when ctx ends first. After an error nothing was started and there is nothing to release.
// The wait is bounded by ctx and by Config.MaxWait. Acquire allocates nothing unless it
// waits. After Drain or Close, work is refused as Draining or Closed. A caller that holds a
// permit of l must not wait for another one: see Calls inside calls.
func (l *Limiter) Acquire(ctx context.Context) (Permit, error) {
	return l.acquire(ctx, &Request{})
}

// AcquireWith is Acquire with the priority, cost, kind and options of r.
func (l *Limiter) AcquireWith(ctx context.Context, r Request) (Permit, error) {
	return l.acquire(ctx, &r)
}

// TryAcquire is Acquire without the wait: when no slot is free, TryAcquire returns
// a *spillway.Rejection at once. The priority, the cost and the kind are those that ctx carries.
func (l *Limiter) TryAcquire(ctx context.Context) (Permit, error) {
	return l.acquire(ctx, &Request{noWait: true})
}

// Do acquires a permit, runs fn with ctx, and ends the permit with fn's error. If ctx has
// ended by then and fn's error does not show it, Do ends the permit with ctx's error, because
// nobody waits for the answer. The slot is free again when fn returns, panics or calls
// runtime.Goexit. A panic propagates to the caller, counts as a failure and gives no sample. Do returns errors of
// Acquire unchanged. Do inside fn on the same limiter jams under load: see Calls inside calls.
func (l *Limiter) Do(ctx context.Context, fn func(context.Context) error) error {
	return l.do(ctx, Request{}, fn)
}

// do is Do with the priority, cost, kind and options of r. It passes ctx to fn unchanged: the
// context keeps its own priority.
func (l *Limiter) do(ctx context.Context, r Request, fn func(context.Context) error) error {
	permit, err := l.acquire(ctx, &r)
	if err != nil {
		return err
	}
	outcome := limit.Failed // if fn does not return
	defer func() {
		if ended := ctx.Err(); ended != nil && (outcome == limit.Success || outcome == limit.Failed) {
			outcome = limit.OutcomeOf(ended) // nobody waits for the answer any more
		}
		permit.end(outcome)
	}()
	err = fn(ctx)
	outcome = limit.OutcomeOf(err)
	return err
}
