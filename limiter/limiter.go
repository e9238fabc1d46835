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
// Callers wait first come, first served.
package limiter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
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

	// Law decides how much may run at once. Nil means the default law; until
	// the adaptive one exists that is a fixed limit of 8 x GOMAXPROCS. The
	// limiter owns the law: one value serves one limiter.
	Law limit.Law

	// QueueSize is how many callers may wait. Zero means 8 times the law's
	// first limit; negative means that nobody waits.
	QueueSize int

	// MaxWait bounds every wait, so that a backend that hangs does not hold
	// callers that have no deadline. Zero means 10 seconds; it cannot be
	// negative. A caller that must not wait uses TryAcquire.
	MaxWait time.Duration

	// Mode is Enforce unless said otherwise. It can be changed at any time.
	Mode Mode
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
	// Priority is for the day the queue is ordered by it; so far callers wait
	// first come, first served, whatever their priority.
	Priority spillway.Priority
	// Cost is how many slots the work takes; zero means one. Work that costs
	// more than the whole limit runs alone.
	Cost int
}

const (
	defaultMaxWait = 10 * time.Second
	// queuePerSlot sizes the default queue: eight service times of backlog are
	// more than any caller should wait through.
	queuePerSlot = 8
)

// Limiter bounds how much runs at once. It is safe for concurrent use and has
// no goroutine. A Limiter must not be copied.
type Limiter struct {
	name    string
	base    time.Time
	maxWait time.Duration
	mode    atomic.Uint32
	limit   atomic.Int64 // mirrors the law, for readers without the lock

	mu       sync.Mutex
	gate     *gate.Gate
	refusals *refusal.Table
	slots    *slot   // free, linked
	waiters  *waiter // free, linked
	idle     chan struct{}
}

// slot is one running piece of work. It is reused; gen tells its users apart.
type slot struct {
	gen      atomic.Uint64
	start    time.Duration
	cost     int
	inFlight int
	next     *slot
}

// waiter is one blocked caller. ready carries its end; slot is set when it was
// granted, nil when it was dropped. Channels and timers are kept per limiter,
// never in a package-level pool: a channel belongs to its synctest bubble.
type waiter struct {
	gate.Waiter
	ready chan struct{}
	timer *time.Timer
	slot  *slot
	next  *waiter
}

// New returns a limiter. New(Config{}) works without a number. The error says
// which field is wrong.
func New(cfg Config) (*Limiter, error) {
	if cfg.MaxWait < 0 {
		return nil, fmt.Errorf("limiter: MaxWait is %v: it cannot be negative (zero means %v)", cfg.MaxWait, defaultMaxWait)
	}
	if cfg.Mode > Off {
		return nil, fmt.Errorf("limiter: unknown mode %d: use Enforce, DryRun or Off", cfg.Mode)
	}
	law := cfg.Law
	if law == nil {
		law = limit.NewFixed(8 * runtime.GOMAXPROCS(0))
	}
	size := cfg.QueueSize
	if size == 0 {
		size = queuePerSlot * law.Limit()
	}
	l := &Limiter{
		name:     cfg.Name,
		base:     time.Now(),
		maxWait:  cfg.MaxWait,
		gate:     gate.New(law, size),
		refusals: refusal.NewTable(uint64(time.Now().UnixNano())),
	}
	if l.maxWait == 0 {
		l.maxWait = defaultMaxWait
	}
	l.mode.Store(uint32(cfg.Mode))
	l.limit.Store(int64(law.Limit()))
	return l, nil
}

// now is the limiter's time. One reading of the monotonic clock, cheaper than
// time.Now.
func (l *Limiter) now() time.Duration { return time.Since(l.base) }

// Acquire waits until the work may run. It returns a *spillway.Rejection when
// the work is refused and ctx.Err() when ctx ends first; then nothing was
// started and there is nothing to release. The wait is bounded by ctx and by
// Config.MaxWait. It allocates nothing unless it waits.
func (l *Limiter) Acquire(ctx context.Context) (Permit, error) {
	return l.acquire(ctx, Request{}, true)
}

// TryAcquire is Acquire without the wait: when there is no free slot it returns
// a *spillway.Rejection at once.
func (l *Limiter) TryAcquire(ctx context.Context) (Permit, error) {
	return l.acquire(ctx, Request{}, false)
}

// AcquireWith is Acquire for work that says its cost.
func (l *Limiter) AcquireWith(ctx context.Context, r Request) (Permit, error) {
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

func (l *Limiter) acquire(ctx context.Context, r Request, mayWait bool) (Permit, error) {
	gone := ctx.Err()
	if Mode(l.mode.Load()) == Off {
		return Permit{}, gone
	}
	cost := min(max(r.Cost, 1), math.MaxInt32)
	now := l.now()

	l.mu.Lock()
	// Once more, for SetMode frees whoever waits under the lock: nobody may join
	// the queue afterwards by an older mode.
	mode := Mode(l.mode.Load())
	if mode == Off {
		l.mu.Unlock()
		return Permit{}, gone
	}
	if gone != nil {
		l.gate.Abandoned()
		l.mu.Unlock()
		return Permit{}, gone
	}
	var d gate.Decision
	var w *waiter
	switch {
	case mode == DryRun:
		d = l.gate.Force(cost, mayWait)
	case mayWait:
		w = l.takeWaiter()
		d = l.gate.Arrive(now, cost, &w.Waiter)
	default:
		d = l.gate.Arrive(now, cost, nil)
	}
	switch d.Verdict {
	case gate.Admit:
		p := l.permit(l.takeSlot(now, cost))
		l.keepWaiter(w)
		l.mu.Unlock()
		return p, nil
	case gate.Reject:
		rej := l.refusals.For(d.Reason, l.gate.RetryAfter(now))
		l.keepWaiter(w)
		l.mu.Unlock()
		return Permit{}, rej
	}
	l.mu.Unlock()
	return l.wait(ctx, w)
}

// wait blocks until w is granted or dropped, ctx ends, or MaxWait has passed.
func (l *Limiter) wait(ctx context.Context, w *waiter) (Permit, error) {
	if w.timer == nil {
		w.timer = time.NewTimer(l.maxWait)
	} else {
		w.timer.Reset(l.maxWait)
	}
	expired := false
	select {
	case <-w.ready:
	case <-ctx.Done():
	case <-w.timer.C:
		expired = true
	}
	w.timer.Stop()
	gone := ctx.Err()

	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.keepWaiter(w)
	now := l.now()
	if gone != nil {
		if !l.gate.Leave(&w.Waiter) {
			l.settle(w)
			if w.slot == nil { // dropped at the same moment, and counted as that
				return Permit{}, l.dropped(now, w)
			}
			// Granted at the same moment: nobody is there to use it.
			l.gate.Revoke(w.slot.cost)
			l.freeSlot(w.slot)
		}
		l.grant(now) // what left may have stood in somebody's way
		return Permit{}, gone
	}
	if expired && l.gate.Expire(&w.Waiter) {
		l.grant(now)
		return Permit{}, l.refusals.Waited(spillway.WaitTooLong, l.gate.RetryAfter(now), now-w.Since())
	}
	l.settle(w)
	if w.slot == nil {
		return Permit{}, l.dropped(now, w)
	}
	l.gate.Taken(w.slot.start - w.Since())
	return l.permit(w.slot), nil
}

// settle takes the message that ended w's wait, if it was not received yet, so
// that w can be used again.
func (l *Limiter) settle(w *waiter) {
	select {
	case <-w.ready:
	default:
	}
}

func (l *Limiter) dropped(now time.Duration, w *waiter) error {
	return l.refusals.Waited(l.gate.ClosedFor(), 0, now-w.Since())
}

// grant wakes every waiter that may run now. The caller holds the lock.
func (l *Limiter) grant(now time.Duration) {
	forced := Mode(l.mode.Load()) != Enforce
	for {
		var next *gate.Waiter
		if forced {
			next = l.gate.NextForced()
		} else {
			next = l.gate.Next()
		}
		if next == nil {
			break
		}
		w := next.Owner.(*waiter)
		w.slot = l.takeSlot(now, next.Cost())
		w.ready <- struct{}{}
	}
	l.limit.Store(int64(l.gate.Law().Limit()))
	if l.idle != nil && l.gate.Idle() {
		close(l.idle)
		l.idle = nil
	}
}

// drop refuses everybody who waits. The caller holds the lock.
func (l *Limiter) drop() (n int) {
	for {
		next := l.gate.Drop()
		if next == nil {
			return n
		}
		next.Owner.(*waiter).ready <- struct{}{}
		n++
	}
}

func (l *Limiter) takeSlot(now time.Duration, cost int) *slot {
	s := l.slots
	if s == nil {
		s = &slot{}
	} else {
		l.slots = s.next
	}
	s.start, s.cost, s.inFlight, s.next = now, cost, l.gate.InFlight(), nil
	return s
}

// freeSlot ends the slot's current use: permits of it no longer match.
func (l *Limiter) freeSlot(s *slot) {
	s.gen.Add(1)
	s.next = l.slots
	l.slots = s
}

func (l *Limiter) takeWaiter() *waiter {
	w := l.waiters
	if w == nil {
		w = &waiter{ready: make(chan struct{}, 1)}
		w.Owner = w
		return w
	}
	l.waiters, w.next, w.slot = w.next, nil, nil
	return w
}

func (l *Limiter) keepWaiter(w *waiter) {
	if w == nil {
		return
	}
	w.slot = nil
	w.next = l.waiters
	l.waiters = w
}

func (l *Limiter) permit(s *slot) Permit { return Permit{l, s, s.gen.Load()} }

// Permit is the right to run one piece of work. It belongs to the caller that
// acquired it and may be copied; ending it twice, also by a copy or long after
// its slot was reused, does nothing. The zero Permit is valid and ends nothing.
type Permit struct {
	l   *Limiter
	s   *slot
	gen uint64
}

// Done ends the work and tells the limiter how it went. Nil is a latency
// sample; a deadline or cancellation is a censored one; an error that matches
// spillway.ErrRejected is a sign of overload below; any other error is no
// sample.
func (p Permit) Done(err error) { p.end(outcome(err), true) }

// Release ends the work without a sample. After Done it does nothing, so that
// it can be deferred.
func (p Permit) Release() { p.end(0, false) }

func (p Permit) end(outcome limit.Outcome, sampled bool) {
	if p.s == nil || p.s.gen.Load() != p.gen {
		return
	}
	l := p.l
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.s.gen.Load() != p.gen {
		return
	}
	s := p.s
	var sample *limit.Sample
	if sampled {
		sample = &limit.Sample{Start: s.start, End: now, InFlight: s.inFlight, Outcome: outcome}
	}
	l.gate.End(now, s.start, s.cost, sample)
	l.freeSlot(s)
	l.grant(now)
}

func outcome(err error) limit.Outcome {
	switch {
	case err == nil:
		return limit.Success
	case errors.Is(err, spillway.ErrRejected):
		return limit.Overload
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return limit.Censored
	}
	return limit.Failed
}
