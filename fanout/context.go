package fanout

import (
	"context"
	"sync/atomic"
	"time"
)

// callContext is the context of a parallel call's branches. It is cancelled with
// a cause, as by context.WithCancelCause, but is no more than its parent and a
// word until a branch asks for more than its error or its deadline: many never
// do.
//
// Each call has a new one, because a branch may keep it, and what it keeps must
// go on to mean that call. Nothing tells whether it did: to keep a context is to
// copy two words, and a generation to check would have to be in them. Only the
// author of the branches knows, and can say so by Config.BorrowedContext.
type callContext struct {
	parent context.Context
	state  atomic.Pointer[callState] // nil: not asked for yet, and only the parent can have ended it
}

type callState struct {
	real   context.Context // what it stands for, once it is asked for
	cancel context.CancelCauseFunc
	cause  error // why it has ended, if it was not asked for by then
}

// finished is the end of a call whose context was not asked for.
var finished = &callState{cause: context.Canceled}

// parents is the end of a call whose parent was seen to have ended first.
var parents = &callState{}

func (c *callContext) Deadline() (time.Time, bool) { return c.parent.Deadline() }

func (c *callContext) Err() error {
	for {
		switch s := c.state.Load(); {
		case s == nil:
			err := c.parent.Err()
			// A branch that has seen it may not see another one: the call may be about to end.
			if err == nil || c.state.CompareAndSwap(nil, parents) {
				return err
			}
		case s == parents:
			return c.parent.Err()
		case s.real != nil:
			return s.real.Err()
		default:
			return context.Canceled
		}
	}
}

func (c *callContext) Done() <-chan struct{} { return c.real().Done() }

// Value asks the real context, because that is how context.Cause and derived
// contexts find it.
func (c *callContext) Value(key any) any { return c.real().Value(key) }

func (c *callContext) real() context.Context {
	for {
		s := c.state.Load()
		if s != nil && s.real != nil {
			return s.real
		}
		parent, ended := c.parent, s != nil && s != parents
		if ended { // what ends the parent now comes too late
			parent = context.WithoutCancel(parent)
		}
		ctx, cancel := context.WithCancelCause(parent)
		if ended {
			cancel(s.cause)
		}
		if c.state.CompareAndSwap(s, &callState{real: ctx, cancel: cancel}) {
			return ctx
		}
		cancel(nil) // another goroutine was quicker
	}
}

// end cancels the context. The first cause stays, also that of the parent.
func (c *callContext) end(cause error) {
	for {
		s := c.state.Load()
		switch {
		case s != nil && s.real != nil:
			s.cancel(cause)
			return
		case s != nil || c.parent.Err() != nil:
			return
		}
		over := finished
		if cause != context.Canceled {
			over = &callState{cause: cause}
		}
		if c.state.CompareAndSwap(nil, over) {
			return
		}
	}
}

// unused reports that no more was asked for than errors and deadlines.
func (c *callContext) unused() bool {
	s := c.state.Load()
	return s == nil || s.real == nil
}

type noHedging struct{}

// WithoutHedging returns a context under which nothing is hedged, for a caller
// that knows of an overload before this package sees it.
func WithoutHedging(ctx context.Context) context.Context {
	return context.WithValue(ctx, noHedging{}, true)
}
