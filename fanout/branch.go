package fanout

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/retrybudget"
)

// Branch is one source of an answer. Make it with Required or Optional.
type Branch[Req, Res any] struct{ branch branch[Req, Res] }

// spec is what a branch is apart from its types.
type spec struct {
	name     string
	required bool
	within   time.Duration
	hedge    *retrybudget.Budget // nil: not hedged
	times    *times
	lateness *lateness // nil for a required branch
}

type branch[Req, Res any] struct {
	spec

	// run calls the branch in the caller and merges its answer, unless its context has ended by
	// then. ended is the context's error, err the branch's error.
	run func(context.Context, Req, *Res) (ended, err error)
	// slot makes the place for the branch's answer when the branch runs on another goroutine.
	slot func() slot[Req, Res]
}

// slot holds the answers of one branch of one call: each attempt's in a place of its own.
type slot[Req, Res any] interface {
	run(ctx context.Context, req Req, attempt int8) error
	take(attempt int8, res *Res) // forgets the attempt's answer; merges it first, unless res is nil
	clear()
}

// Required is a branch that the answer needs: when the branch fails, the call fails. Do starts a
// required branch whenever time is left, no matter how long earlier calls took. run fetches the
// branch's part of the answer and should end when its context ends. merge adds run's value to the
// answer. Do calls merge at most once, on the caller's goroutine: after every branch has ended or
// was given up, or, in sequential calls, right after run. merge must not keep the pointer.
func Required[Req, Res, T any](name string, run func(context.Context, Req) (T, error), merge func(*Res, T)) Branch[Req, Res] {
	if run == nil || merge == nil {
		return Branch[Req, Res]{branch[Req, Res]{spec: spec{name: name, required: true}}} // New complains
	}
	return Branch[Req, Res]{branch[Req, Res]{
		spec: spec{name: name, required: true},
		run: func(ctx context.Context, req Req, res *Res) (ended, err error) {
			v, err := guard(ctx, req, run)
			ended = ctx.Err()
			if err == nil && ended == nil {
				merge(res, v)
			}
			return ended, err
		},
		slot: func() slot[Req, Res] { return &typed[Req, Res, T]{fetch: run, into: merge} },
	}}
}

// Optional is a branch whose failure only leaves the answer partial. See Required.
//
// Do does not start an optional branch that would certainly be late. The evidence is at least
// 64 late calls in a row among calls with about the same remaining time, within a factor of two.
// The evidence expires five seconds after the last late call, or after twenty times that call's
// remaining time if longer. One in sixteen of the calls ruled out by the evidence starts the branch
// anyway. Calls with other remaining times do not matter, nor do failures other than lateness.
func Optional[Req, Res, T any](name string, run func(context.Context, Req) (T, error), merge func(*Res, T)) Branch[Req, Res] {
	b := Required(name, run, merge)
	b.branch.required = false
	return b
}

// Within returns the branch with its own deadline: d after the branch starts, or the caller's
// deadline if sooner. Earlier branches on the same goroutine take nothing from d, and a second
// attempt adds nothing to d. Do gives up a branch that ignores its deadline if the branch runs on
// another goroutine.
func (b Branch[Req, Res]) Within(d time.Duration) Branch[Req, Res] {
	b.branch.within = d
	return b
}

// Hedged returns the branch with a second attempt, which starts when the first takes longer than
// nearly all recent attempts: longer than the 95th percentile, or a higher one if the budget earns
// less than 5 %. The first attempt to succeed wins, and only then is the other cancelled. When both
// fail, the first attempt's error counts. The work must be idempotent.
//
// Each second attempt costs a token of budget, which the branch's successes refill, and a token of
// Config.Bulkhead. A nil budget stands for a private one that earns three tokens per two hundred
// successes. Do makes no second attempt without both tokens, and while a limiter refuses
// (Config.Limiter, or one that a branch uses) and for a second afterwards.
// A branch that runs in the caller for lack of a goroutine is hedged only if a goroutine is free
// when the second attempt is due.
func (b Branch[Req, Res]) Hedged(budget *retrybudget.Budget) Branch[Req, Res] {
	if budget == nil {
		budget, _ = retrybudget.New(retrybudget.Config{Ratio: 0.015})
	}
	b.branch.hedge = budget
	return b
}

var tooLate error = &spillway.Rejection{Reason: spillway.ReasonDeadlineTooClose}

// guard runs a branch and turns its panic into an error.
func guard[Req, T any](ctx context.Context, req Req, run func(context.Context, Req) (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &spillway.PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	return run(ctx, req)
}

// typed is the slot of a branch that returns a T.
type typed[Req, Res, T any] struct {
	fetch  func(context.Context, Req) (T, error)
	into   func(*Res, T)
	values [2]T // of the attempts
}

func (s *typed[Req, Res, T]) run(ctx context.Context, req Req, attempt int8) (err error) {
	s.values[attempt], err = guard(ctx, req, s.fetch)
	return err
}

func (s *typed[Req, Res, T]) take(attempt int8, res *Res) {
	var none T
	v := s.values[attempt]
	s.values[attempt] = none
	if res != nil {
		s.into(res, v)
	}
}

func (s *typed[Req, Res, T]) clear() { s.values = [2]T{} }
