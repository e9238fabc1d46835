// Package semaphore is a weighted semaphore in front of a limiter, with the methods of
// golang.org/x/sync/semaphore. A program changes one import line, and back:
//
//	import "github.com/spillway-go/spillway/limiter/semaphore"
//
//	slots := semaphore.NewWeighted(8)
//	...
//	if err := slots.Acquire(ctx, 1); err != nil {
//		return err
//	}
//	defer slots.Release(1)
//
// A semaphore of [NewWeighted] has a fixed size and refuses nothing: a caller waits until the
// slots are free or its context ends. Callers with the same priority are served first come,
// first served, however many slots they ask for. [Weighted.Limiter] adds what a semaphore does
// not have: statistics and histograms of waits, metrics, a dry run, Drain, bounds that change
// at run time. Contexts carry priorities (spillway.WithPriority) and kinds of work.
//
// [New] takes any limiter, such as one with a limit that is learned, or one that refuses
// callers which would wait too long.
//
// # Cost
//
// Acquire without a wait and Release allocate nothing, and TryAcquire allocates only for more than
// one slot ("go test ./limiter/semaphore -run Alloc"). A pair of Acquire and Release takes about as long as a pair
// of Acquire and Done of the limiter: about six times as long as in x/sync, mostly because the
// limiter reads the clock twice (2026-11-30, two processors; "make bench BENCH=Multiple" prints the
// multiple).
//
// # Pitfalls
//
//   - A fixed size with unbounded waits protects what is behind the semaphore, but not its
//     callers: under overload the queue grows, and all callers are late. Give contexts a
//     deadline, or move on to the limiter, which refuses early.
//   - The limiter is not told whose work ended nor how. Release(n) ends the oldest work of n
//     slots, and all work counts as a success. Durations of the same weight add up to the
//     right sum, but a law or a kind of work learns less than from Limiter.Do.
//   - In a dry run, and while the mode is Off, the size does not bound what runs.
//   - After Drain or Close of the limiter, Acquire returns a *spillway.Rejection, which
//     matches spillway.ErrRejected.
//   - Acquire of more slots than there are waits for the end of its context alone, as with
//     x/sync: neither Drain nor Close nor a change of the mode ends that wait.
//   - Work that holds slots must not wait for more slots of the same semaphore, as with x/sync.
//
// # When not to use it
//
// New code calls limiter.Do: it is shorter, cannot lose a slot and tells the limiter how the
// work went. A semaphore that needs no statistics and no priorities stays with x/sync.
package semaphore

import (
	"context"
	"math"
	"sync"

	"github.com/spillway-go/spillway/internal/carry"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// Weighted is a weighted semaphore. A Weighted is safe for concurrent use and must not be
// copied. Create a Weighted with NewWeighted or New.
type Weighted struct {
	lim  *limiter.Limiter
	size int64

	mu    sync.Mutex
	total int64   // slots that Release may return, without those of wraps
	wraps int     // multiples of 2^63 slots that Release may return, too: a dry run bounds nothing
	held  []grant // not returned yet, the oldest first; those before first are gone
	first int
}

// grant is a permit and the slots of it that are not returned yet.
type grant struct {
	slots  int64
	permit limiter.Permit
}

// NewWeighted returns a semaphore with n slots, whose callers wait as long as their contexts
// allow. A negative n panics. On a 32-bit platform at most math.MaxInt32 slots are used.
func NewWeighted(n int64) *Weighted {
	if n < 0 {
		panic("semaphore: a size cannot be negative")
	}
	n = min(n, math.MaxInt)
	lim, err := limiter.New(limiter.Config{Law: limit.NewFixed(int(n)), QueueSize: math.MaxInt, MaxWait: limiter.NoMaxWait})
	if err != nil {
		panic(err) // the configuration is right
	}
	return &Weighted{lim: lim, size: n}
}

// New returns a semaphore in front of lim, which sets the limit and the bounds of the waits.
// With limiter.Config{MaxWait: limiter.NoMaxWait} callers wait as long as their contexts
// allow; otherwise Acquire may return a *spillway.Rejection. Work that asks for more than the
// limit runs alone, because the limit may change. Others may use lim too.
func New(lim *limiter.Limiter) *Weighted { return &Weighted{lim: lim, size: math.MaxInt} }

// Limiter returns the limiter, for its statistics, its mode, Drain and Close. The limiter of
// NewWeighted has no name, so metrics accept one of them. Of several, give each a name by New:
//
//	lim, err := limiter.New(limiter.Config{
//		Name: "reports", Law: limit.NewFixed(8), QueueSize: math.MaxInt, MaxWait: limiter.NoMaxWait,
//	})
//	slots := semaphore.New(lim)
func (w *Weighted) Limiter() *limiter.Limiter { return w.lim }

// Acquire waits until n slots are free and takes them. It returns the error of ctx if ctx ends
// first, also if n is more than the size of the semaphore and than its limit. It returns a
// *spillway.Rejection if the limiter refuses the work. After an error nothing is held. The
// priority and the kind of ctx apply, its cost does not. An n of zero does not wait, and a
// negative n panics.
func (w *Weighted) Acquire(ctx context.Context, n int64) error {
	if w.tooLarge(n) {
		<-ctx.Done()
		return ctx.Err()
	}
	if n == 0 {
		return ctx.Err()
	}
	p, err := w.lim.AcquireWith(ctx, limiter.Request{Cost: slots(n)})
	if err == nil {
		w.hold(grant{n, p})
	}
	return err
}

// TryAcquire takes n slots if they are free and no caller of at least normal priority waits,
// and reports whether it took them. A negative n panics.
func (w *Weighted) TryAcquire(n int64) bool {
	if w.tooLarge(n) {
		return false
	}
	if n == 0 {
		return true
	}
	ctx := context.Background()
	if n > 1 {
		ctx = &carry.Work{Context: ctx, Cost: slots(n)}
	}
	p, err := w.lim.TryAcquire(ctx)
	if err == nil {
		w.hold(grant{n, p})
	}
	return err == nil
}

// Release returns n slots. The slots may be of several acquisitions, or a part of one. If n is
// negative or more than what is held, Release panics and returns nothing.
func (w *Weighted) Release(n int64) {
	w.mu.Lock()
	if n < 0 || n > w.total && w.wraps == 0 {
		w.mu.Unlock()
		panic("semaphore: released less than nothing, or more than is held")
	}
	if w.total -= n; w.total < 0 {
		w.total &= math.MaxInt64 // adds 2^63
		w.wraps--
	}
	w.mu.Unlock()
	w.end(n)
}

// end ends work of n slots, which total does not count any more.
func (w *Weighted) end(n int64) {
	defer func() {
		if n > 0 { // the limiter's law or observer panicked at one of several ends
			w.end(n)
		}
	}()
	for n > 0 {
		g, all := w.take(n)
		if n -= g.slots; all {
			g.permit.Done(nil)
		} else {
			g.permit.Shrink(int(g.slots))
		}
	}
}

// tooLarge reports whether n is more than the size, and than a limit that bounds have raised. A dry
// run admits all work, and a closed limiter refuses all work.
func (w *Weighted) tooLarge(n int64) bool {
	if n < 0 {
		panic("semaphore: a weight cannot be negative")
	}
	return n > w.size && w.lim.Mode() == limiter.Enforce && w.lim.Open() && (w.size == 0 || n > int64(w.lim.Limit()))
}

func slots(n int64) int { return int(min(n, math.MaxInt)) }

// spare is how many grants an idle semaphore has room for.
const spare = 1024

// hold appends g.
func (w *Weighted) hold(g grant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.held) == cap(w.held) && 2*w.first >= len(w.held) {
		w.held = w.held[:copy(w.held, w.held[w.first:])]
		w.first = 0
	}
	w.held = append(w.held, g)
	if w.total += g.slots; w.total < 0 {
		w.total &= math.MaxInt64 // takes 2^63 away
		w.wraps++
	}
}

// near is how many of the oldest grants are searched for one of the right size.
const near = 64

// take removes the oldest grant of n slots, or else up to n slots of the oldest grant. all is
// false if the permit holds more slots. The caller has subtracted n from total.
func (w *Weighted) take(n int64) (g grant, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	held, at := w.held[w.first:], 0
	for i := range min(len(held), near) {
		if held[i].slots == n {
			at = i
			break
		}
	}
	g = held[at]
	if g.slots > n {
		held[at].slots -= n
		return grant{n, g.permit}, false
	}
	copy(held[1:at+1], held[:at])
	if w.first++; w.first == len(w.held) {
		w.held, w.first = w.held[:0], 0
		if cap(w.held) > spare {
			w.held = nil
		}
	}
	return g, true
}
