// Package limiter decides whether work may run now: it is admitted, waits a
// bounded time, or is rejected with a reason and advice.
//
//	err := lim.Do(ctx, func(ctx context.Context) error { return call(ctx) })
//
// Do is the usual way: the slot comes back whatever the work does. Where the
// work cannot be put into one function, take a Permit:
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
// How much may run at once is found out by a control law (package limit). Callers
// wait in strict order of priority, first come, first served within one; a caller
// that would wait in vain is refused at once. How long it would take is predicted from work
// of its kind: see Request.Kind.
//
// # Calls inside calls
//
// Work that holds a permit and asks the same limiter for another one waits for a slot that
// only its like hold: Do inside Do, a handler behind a middleware that calls its database
// through the middleware's limiter, or a service that calls another one which calls it
// back. Under light load that goes well; once outer work has all slots, little or nothing is
// done. A limiter cannot know: a context that told of the permit would be one more
// allocation for each admission, and work that runs in several goroutines has no other
// bound than what each of them asks for. So:
//
//   - Give each layer a limiter of its own: one in front of the handlers, one in front of each
//     thing that they call.
//   - Acquire once for all that one piece of work does, with its Cost, and pass the Permit, or
//     let inner functions take for granted that their caller has acquired.
//   - Where services call each other in a circle, let calls from inside have a limiter of
//     their own, chosen by route, by header or by key (Keyed).
//
// Stats().State names this where nothing moves, or nearly all is lost, while work waits.
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
	"github.com/spillway-go/spillway/internal/refusal"
	"github.com/spillway-go/spillway/limit"
)

// Request says what an acquisition asks for. The zero value asks for what Acquire
// does: one slot, with the priority and the kind of the context. Fields may be added.
type Request struct {
	// Priority overrides that of the context, unless it is zero, which is
	// spillway.Normal. Work that is Normal whatever its context says takes a
	// context that says so: spillway.WithPriority(ctx, spillway.Normal).
	Priority spillway.Priority
	// Cost is how many slots the work takes; zero means what the context says
	// (spillway.WithCost), or one. Work that costs more than the whole limit runs alone. Where
	// more important work keeps slots in use, slots are gathered for large work now and then,
	// for about the time that slow work takes: whoever has the time waits until the large work
	// has run, all others are admitted. So if most others have too little time, large work of
	// low priority runs only when nothing else does.
	Cost int
	// Kind overrides that of the context, unless it is empty: work is compared with work of
	// the same kind and priority (see spillway.WithKind). Without either it is of the kind
	// of its priority and of the order of magnitude of its deadline.
	Kind string
	// Long is for work that is long by nature: a stream, an export, a watch. It is
	// admitted like other work, when there is room for its cost, but then holds no
	// slot, is no sample for the law and enters no prediction: the limit bounds work
	// that takes short times, and a stream for every slot would leave no room for it.
	// So nothing here bounds how much long work runs: give it a limiter of its own,
	// with limit.NewFixed, in which it is not Long. Drain waits for it, Stats counts
	// it as LongInFlight, and it is not reported as a leak. Work that turns out to be long
	// while it runs says so with Permit.Long.
	Long bool
	// DryRun decides about this work and counts the decision, and neither refuses it
	// nor makes it wait, although the mode is Enforce: to enforce for a part of the
	// callers first. Once the limiter drains or is closed it is refused like other work.
	DryRun bool
	// OverShare says that the caller has more than its fair share of what runs. The
	// work is admitted when there is room; where it would have to wait or be refused it
	// is refused at once, as Quota. Config.MaxRefused does not count that.
	OverShare bool
}

// Limiter bounds how much runs at once. It is safe for concurrent use and has
// no goroutine. New makes one: the zero Limiter panics and says so. A Limiter must
// not be copied.
type Limiter struct {
	name      string
	base      time.Time
	maxWait   time.Duration
	observer  Observer
	leakAfter time.Duration
	onLeak    func(Leak)
	signals   []Signal
	quiet     bool        // an admission calls nothing of the user's afterwards
	shut      atomic.Bool // the intake is closed

	mode  atomic.Uint32
	limit atomic.Int64         // mirrors the gate, for readers without the lock
	due   atomic.Int64         // when signals and leaks are looked at next
	ended atomic.Pointer[slot] // work that ended while the lock was held, the latest first
	memos memos

	polling sync.Mutex // held around the user's signals; taken before mu
	mu      sync.Mutex
	last    time.Duration // the latest time seen: the gate's never goes back
	law     limit.Law
	ownLaw  bool     // the law is the limiter's choice, not the operator's
	careful *careful // the law, if it is of the user's making; set once
	over    overruling
	gate    *gate.Gate
	press   press
	lease   lease
	refusal *refusal.Table
	running slots
	waiters waiters
	woken   *waiter       // to be told when the lock is free, linked
	grew    time.Duration // when more slots or waiters were needed than were kept
	idle    chan struct{} // closed when the last work ends; nil unless Drain waits
	leaked  uint64

	log       limit.Log        // of what the limit was
	overruled string           // by what the law was at the last change; empty: by nothing
	changes   []limit.Decision // not yet told to the observer
}

// New returns a limiter. New(Config{}) works without a number. The error names
// every field that is wrong, one on a line.
func New(cfg Config) (*Limiter, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	l := &Limiter{
		name: cfg.Name, base: time.Now(), maxWait: min(cmp.Or(cfg.MaxWait, defaultMaxWait), longestWait),
		leakAfter: cfg.LeakAfter, onLeak: cfg.OnLeak, signals: slices.Clone(cfg.Signals),
		law: cfg.Law, ownLaw: cfg.Law == nil, over: overruling{rampFor: cfg.SlowStart},
	}
	if l.ownLaw {
		l.law = lawFor(cfg.Mode)
	} else {
		l.law, l.careful = carefully(cfg.Law)
	}
	if cfg.Observer != nil {
		l.observer = *cfg.Observer
	}
	l.quiet = l.leakAfter == 0 && l.observer.Admitted == nil && l.careful == nil
	l.gate = gate.New(gate.Config{
		Law: l.law, QueueSize: cmp.Or(cfg.QueueSize, defaultQueue), MaxWait: l.maxWait, MaxRefused: cfg.MaxRefused,
	})
	l.bound()
	l.refusal = refusal.NewTable(uint64(l.base.UnixNano()))
	l.mode.Store(uint32(cfg.Mode))
	l.limit.Store(int64(l.gate.Limit()))
	l.overruled = l.overruledBy()
	l.due.Store(int64(forever))
	if len(cfg.Signals) > 0 || cfg.LeakAfter > 0 {
		l.due.Store(0)
	}
	l.raise()
	return l, nil
}

// Name returns Config.Name.
func (l *Limiter) Name() string { return l.name }

// now is the limiter's time. One reading of the monotonic clock, cheaper than
// time.Now.
func (l *Limiter) now() time.Duration { return time.Since(l.base) }

// Acquire waits until the work may run, with the priority and the cost that ctx carries. It
// returns a *spillway.Rejection when the work is refused and ctx.Err() when ctx
// ends first; then nothing was started and there is nothing to release. The wait
// is bounded by ctx and by Config.MaxWait. It allocates nothing unless it waits.
// After Drain or Close, work is refused as Draining or Closed. Whoever holds a permit of
// l must not wait for another one: see Calls inside calls.
func (l *Limiter) Acquire(ctx context.Context) (Permit, error) {
	return l.acquire(ctx, Request{}, true)
}

// AcquireWith is Acquire for work that says itself what it asks for.
func (l *Limiter) AcquireWith(ctx context.Context, r Request) (Permit, error) {
	return l.acquire(ctx, r, true)
}

// TryAcquire is Acquire without the wait: when there is no free slot it returns
// a *spillway.Rejection at once.
func (l *Limiter) TryAcquire(ctx context.Context) (Permit, error) {
	return l.acquire(ctx, Request{}, false)
}

// TryAcquireWith is TryAcquire for work that says itself what it asks for.
func (l *Limiter) TryAcquireWith(ctx context.Context, r Request) (Permit, error) {
	return l.acquire(ctx, r, false)
}

// Do acquires, runs fn with ctx, and ends the permit with fn's error, or with that of ctx if
// ctx has ended by then and fn says nothing of it: nobody waits for the answer. The slot
// comes back when fn returns, panics or calls runtime.Goexit; a panic goes on
// to the caller and is no sample. Errors of Acquire are returned as they are. Do inside fn
// on the same limiter jams under load: see Calls inside calls.
func (l *Limiter) Do(ctx context.Context, fn func(context.Context) error) error {
	return l.DoWith(ctx, Request{}, fn)
}

// DoWith is Do for work that says itself what it asks for. The context of fn is
// ctx as it is, with the priority that it had.
func (l *Limiter) DoWith(ctx context.Context, r Request, fn func(context.Context) error) error {
	permit, err := l.acquire(ctx, r, true)
	if err != nil {
		return err
	}
	defer permit.Release()
	err = fn(ctx)
	outcome := limit.OutcomeOf(err)
	if ended := ctx.Err(); ended != nil && (outcome == limit.Success || outcome == limit.Failed) {
		outcome = limit.OutcomeOf(ended) // nobody waits for the answer any more
	}
	permit.end(outcome)
	return err
}
