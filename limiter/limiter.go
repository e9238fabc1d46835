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
// How much may run at once is found out by a control law (package limit). Who
// waits does so in strict order of priority, first come, first served within
// one; who would wait in vain is refused at once.
package limiter

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/internal/refusal"
	"github.com/spillway-go/spillway/limit"
)

// Config says what a Limiter does. The zero value works.
type Config struct {
	// Name labels this limiter in metrics and reports.
	Name string

	// Law decides how much may run at once. Nil means limit.NewAdaptive, which
	// finds out. The limiter owns the law: one value serves one limiter.
	Law limit.Law

	// QueueSize is how many callers may wait. Zero means 16,384: who would wait
	// too long is refused long before, so this only bounds memory. Negative
	// means that nobody waits.
	QueueSize int

	// MaxWait bounds every wait, also where the deadline is later. Zero means 10
	// seconds, for a backend that hangs: what would wait longer than a short burst
	// takes to pass is refused long before. It cannot be negative. A caller that
	// must not wait uses TryAcquire.
	//
	// In a burst work waits at most as long as eight pieces of work take one after
	// the other, without a deadline half as long and at most a second, but never less
	// than 100 ms. Once demand has exceeded the capacity for five times that long, it
	// waits at most for about one piece of work.
	MaxWait time.Duration

	// Mode is Enforce unless said otherwise. It can be changed at any time.
	Mode Mode

	// MaxRefused is the share of arrivals that may be refused for lack of
	// capacity, below 1, over the last ten seconds; beyond it work is admitted over
	// the limit. Zero means that there is no such bound. Work that could not meet its
	// deadline even if it ran at once is refused all the same.
	MaxRefused float64

	// Signals press the limit down for reasons that latency does not show. One
	// value serves one limiter.
	Signals []Signal

	// SlowStart is for a process that starts cold: from the first arrival the
	// limit grows in a straight line, from one slot to the law's own over this
	// time. Zero means none.
	SlowStart time.Duration

	// LeakAfter finds permits that were never ended: one that is older is
	// reported once, with the place that acquired it. Zero means off, and costs
	// nothing; otherwise every admission records its call stack. Reports are
	// made while the limiter is used, and by Stats.
	LeakAfter time.Duration
	// OnLeak receives the reports; nil means that only Stats shows them.
	OnLeak func(Leak)

	// Observer is told of every decision; nil costs nothing.
	Observer *Observer
}

// Mode says whether decisions are enforced.
type Mode uint8

const (
	Enforce Mode = iota // decide and enforce
	DryRun              // decide and count, admit everybody
	Off                 // admit everybody at once, uncounted, without taking a lock
)

// String returns "enforce", "dryrun" or "off".
func (m Mode) String() string {
	switch m {
	case Enforce:
		return "enforce"
	case DryRun:
		return "dryrun"
	case Off:
		return "off"
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// Request says what an acquisition asks for.
type Request struct {
	// Priority orders who waits; the zero value is spillway.Normal. What the
	// context carries is not looked at.
	Priority spillway.Priority
	// Cost is how many slots the work takes; zero means one. Work that costs
	// more than the whole limit runs alone.
	Cost int
}

const (
	defaultMaxWait = 10 * time.Second
	longestWait    = forever / 4 // for ever, and other times can be added to it
	defaultQueue   = 16384
	forever        = time.Duration(math.MaxInt64)
)

// Limiter bounds how much runs at once. It is safe for concurrent use and has
// no goroutine. A Limiter must not be copied.
type Limiter struct {
	name      string
	base      time.Time
	maxWait   time.Duration
	observer  *Observer
	leakAfter time.Duration
	onLeak    func(Leak)
	signals   []Signal
	quiet     bool // nobody is told of admissions

	mode  atomic.Uint32
	limit atomic.Int64         // mirrors the gate, for readers without the lock
	due   atomic.Int64         // when signals and leaks are looked at next
	ended atomic.Pointer[slot] // work that ended while the lock was held, the latest first
	memos memos

	polling  sync.Mutex // held around the user's signals; taken before mu
	mu       sync.Mutex
	last     time.Duration // the latest time seen: the gate's never goes back
	law      *governed
	gate     *gate.Gate
	press    press
	refusal  *refusal.Table
	running  slots
	waiters  *waiter       // free, linked
	nWaiters int           // of them
	woken    *waiter       // to be told when the lock is free, linked
	busy     time.Duration // when more of slots or waiters was needed than was kept
	idle     chan struct{}
	changes  []limit.Decision // not yet told to the observer
	why      why
	leaked   uint64
}

// New returns a limiter. New(Config{}) works without a number. The error says
// which field is wrong.
func New(cfg Config) (*Limiter, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	l := &Limiter{
		name: cfg.Name, base: time.Now(), maxWait: min(cmp.Or(cfg.MaxWait, defaultMaxWait), longestWait),
		observer: cfg.Observer, leakAfter: cfg.LeakAfter, onLeak: cfg.OnLeak, signals: cfg.Signals,
		law: govern(cfg.Law, cfg.Mode, cfg.SlowStart),
	}
	l.quiet = cfg.LeakAfter == 0 && (cfg.Observer == nil || cfg.Observer.Admitted == nil)
	l.gate = gate.New(gate.Config{
		Law: l.law, QueueSize: cmp.Or(cfg.QueueSize, defaultQueue), MaxWait: l.maxWait, MaxRefused: cfg.MaxRefused,
	})
	l.refusal = refusal.NewTable(uint64(l.base.UnixNano()))
	l.mode.Store(uint32(cfg.Mode))
	l.limit.Store(int64(l.gate.Limit()))
	l.why.ruler = l.ruler()
	l.due.Store(int64(forever))
	if len(cfg.Signals) > 0 || cfg.LeakAfter > 0 {
		l.due.Store(0)
	}
	return l, nil
}

func (cfg *Config) check() error {
	switch {
	case cfg.MaxWait < 0:
		return fmt.Errorf("limiter: MaxWait is %v: it cannot be negative (zero means %v)", cfg.MaxWait, defaultMaxWait)
	case cfg.Mode > Off:
		return fmt.Errorf("limiter: unknown mode %d: use Enforce, DryRun or Off", cfg.Mode)
	case !(cfg.MaxRefused >= 0 && cfg.MaxRefused < 1):
		return fmt.Errorf("limiter: MaxRefused is %v: use a share from 0 (no bound) to less than 1", cfg.MaxRefused)
	case cfg.SlowStart < 0:
		return fmt.Errorf("limiter: SlowStart is %v: it cannot be negative (zero means none)", cfg.SlowStart)
	case cfg.LeakAfter < 0:
		return fmt.Errorf("limiter: LeakAfter is %v: it cannot be negative (zero means off)", cfg.LeakAfter)
	}
	for i, s := range cfg.Signals {
		if s == nil {
			return fmt.Errorf("limiter: signal %d is nil", i)
		}
		if g, ok := s.(*gauge); ok && (g.name == "" || g.read == nil || !(g.limit > 0)) {
			return fmt.Errorf("limiter: signal %d: a gauge needs a name, a function and a limit above zero", i)
		}
	}
	return nil
}

// now is the limiter's time. One reading of the monotonic clock, cheaper than
// time.Now.
func (l *Limiter) now() time.Duration { return time.Since(l.base) }

// Acquire waits until the work may run, with the priority that ctx carries. It
// returns a *spillway.Rejection when the work is refused and ctx.Err() when ctx
// ends first; then nothing was started and there is nothing to release. The wait
// is bounded by ctx and by Config.MaxWait. It allocates nothing unless it waits.
// After Drain or Close, work is refused as Draining or Closed.
func (l *Limiter) Acquire(ctx context.Context) (Permit, error) {
	if Mode(l.mode.Load()) == Off {
		return Permit{}, ctx.Err()
	}
	return l.acquire(ctx, Request{Priority: spillway.PriorityFrom(ctx)}, true)
}

// TryAcquire is Acquire without the wait: when there is no free slot it returns
// a *spillway.Rejection at once.
func (l *Limiter) TryAcquire(ctx context.Context) (Permit, error) {
	if Mode(l.mode.Load()) == Off {
		return Permit{}, ctx.Err()
	}
	return l.acquire(ctx, Request{Priority: spillway.PriorityFrom(ctx)}, false)
}

// AcquireWith is Acquire for work that says its priority and cost itself.
func (l *Limiter) AcquireWith(ctx context.Context, r Request) (Permit, error) {
	if Mode(l.mode.Load()) == Off {
		return Permit{}, ctx.Err()
	}
	return l.acquire(ctx, r, true)
}

// Do acquires, runs fn with ctx, and ends the permit with fn's error. The slot
// comes back when fn returns, panics or calls runtime.Goexit; a panic goes on
// to the caller and is no sample. Errors of Acquire are returned as they are.
func (l *Limiter) Do(ctx context.Context, fn func(context.Context) error) error {
	permit, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	defer permit.Release()
	err = fn(ctx)
	permit.Done(err)
	return err
}
