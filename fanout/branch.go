package fanout

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/retrybudget"
)

// Branch is one source of an answer. Make it with Required or Optional.
type Branch[Req, Res any] struct{ spec branch[Req, Res] }

type branch[Req, Res any] struct {
	name     string
	required bool
	within   time.Duration
	hedge    *retrybudget.Budget // nil: not hedged

	// run calls the branch and merges what it answered, in the caller, unless its
	// context has ended by then: that is the first error.
	run func(context.Context, Req, *Res) (ended, err error)
	// slot makes the place of its answer: beside the caller.
	slot func() slot[Req, Res]

	times    *times
	lateness *lateness // nil: required
}

// slot holds the answer of one branch of one call until it is merged.
type slot[Req, Res any] interface {
	// attempt runs the branch and settles it. It returns with the frame locked.
	attempt(fr *frame[Req, Res], i int, ctx context.Context, began time.Duration, second bool)
	merge(*Res)
	clear()
}

// Required is a branch that the answer cannot do without: its failure is the
// failure of the call. It is started whenever time is left, whatever earlier calls
// took. run fetches; it should end when its context does. merge
// adds what run returned to the answer, on the caller's goroutine, once, after
// all branches have ended, or right after this one when it ran in the caller; it
// must not keep the pointer.
func Required[Req, Res, T any](name string, run func(context.Context, Req) (T, error), merge func(*Res, T)) Branch[Req, Res] {
	if run == nil || merge == nil {
		return Branch[Req, Res]{branch[Req, Res]{name: name, required: true}} // New complains
	}
	return Branch[Req, Res]{branch[Req, Res]{
		name: name, required: true,
		run: func(ctx context.Context, req Req, res *Res) (ended, err error) {
			v, err := guard(ctx, req, run)
			ended = ctx.Err()
			if err == nil && ended == nil {
				merge(res, v)
			}
			return ended, err
		},
		slot: func() slot[Req, Res] { return &typed[Req, Res, T]{run: run, into: merge} },
	}}
}

// Optional is a branch whose failure only leaves the answer partial. See
// Required.
//
// It is not started when it would certainly be late: when the latest 64 calls or
// more that had about as much time, within a factor of two, were late in a row, the
// last of them less than five seconds ago, or twenty times what they had if that is
// more. One in sixteen of the calls that this speaks against starts it all the same.
// What other calls took does not matter, nor what failed otherwise.
func Optional[Req, Res, T any](name string, run func(context.Context, Req) (T, error), merge func(*Res, T)) Branch[Req, Res] {
	b := Required(name, run, merge)
	b.spec.required = false
	return b
}

// Within returns the branch with a deadline of its own, d after it was started,
// or that of the caller if it is sooner: what ran before it in the same goroutine
// takes nothing from it, and a second attempt adds nothing. Beside the caller, a
// branch that ignores its deadline is given up all the same.
func (b Branch[Req, Res]) Within(d time.Duration) Branch[Req, Res] {
	b.spec.within = d
	return b
}

// Hedged returns the branch with a second attempt beside the first when that
// takes longer than all but a few did lately: longer than the 95th percentile,
// or a higher one when the budget earns less than that. The first to succeed
// wins, and only then is the other cancelled; when both fail, the first one's
// error counts. The work must be idempotent.
//
// Each second attempt costs a token of the budget, which the branch's successes
// refill, and one of the goroutines' budget. A nil budget stands for one of its
// own that earns three for two hundred successes. Without a token, while a limiter
// rejects (Config.Limiter, or one that a branch asked) and for a second
// afterwards, and for calls under WithoutHedging, there is only the first
// attempt. A branch that runs in the caller for lack of a goroutine is not
// hedged.
func (b Branch[Req, Res]) Hedged(budget *retrybudget.Budget) Branch[Req, Res] {
	if budget == nil {
		budget, _ = retrybudget.New(retrybudget.Config{Ratio: 0.015})
	}
	b.spec.hedge = budget
	return b
}

var tooLate error = &spillway.Rejection{Reason: spillway.DeadlineTooClose}

// guard runs a branch and turns its panic into an error.
func guard[Req, T any](ctx context.Context, req Req, run func(context.Context, Req) (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &spillway.PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	return run(ctx, req)
}

// ending is how an attempt ended, and what its error and its context say of that. Both
// may be of the user's making, so they are asked without the lock of the frame.
type ending struct {
	err      error
	rejected bool  // a limiter has refused it
	over     error // of its context
	heard    bool  // err says the same
	alone    bool  // its own deadline has ended it, not the caller's context
}

// ask asks them. A panic of an error's method is one of its branch.
func (e *ending) ask(ctx, callers context.Context) {
	defer func() {
		if p := recover(); p != nil {
			e.err = &spillway.PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	if e.over = ctx.Err(); e.over != nil {
		e.alone = endedAlone(ctx, callers)
	}
	if e.err != nil {
		e.rejected = errors.Is(e.err, spillway.ErrRejected)
		e.heard = e.over != nil && errors.Is(e.err, e.over)
	}
}

type typed[Req, Res, T any] struct {
	run   func(context.Context, Req) (T, error)
	into  func(*Res, T)
	value T
}

func (s *typed[Req, Res, T]) attempt(fr *frame[Req, Res], i int, ctx context.Context, began time.Duration, second bool) {
	ended := false
	defer func() {
		if !ended { // runtime.Goexit: nothing after this runs on this goroutine
			fr.mu.Lock()
			fr.vanished(i)
		}
	}()
	v, err := guard(ctx, fr.req, s.run)
	ended = true
	now := fr.clock()
	e := ending{err: err}
	e.ask(ctx, fr.parent)
	if e.rejected {
		fr.f.pauseHedging()
	}
	fr.mu.Lock()
	if fr.settle(i, &e, began, now, second) {
		s.value = v
	}
}

func (s *typed[Req, Res, T]) merge(res *Res) { s.into(res, s.value) }

func (s *typed[Req, Res, T]) clear() {
	var zero T
	s.value = zero
}
