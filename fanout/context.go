package fanout

import (
	"context"
	"sync/atomic"
	"time"
)

// callContext is the context of a parallel call's branches. It is cancelled with a cause, as by
// context.WithCancelCause. It consists of its parent and one word until a branch calls Done or
// Value; many branches never do.
//
// Each call has a new callContext, because a branch may keep its context, and a kept context must
// continue to belong to its call. The package cannot detect a kept context: keeping means copying
// the interface's two words, and a generation number would have to be in these words.
type callContext struct {
	parent context.Context
	state  atomic.Pointer[callState] // nil: no real context yet, and only the parent can have ended the context
}

type callState struct {
	real   context.Context // the cancellable context; nil until a branch calls Done or Value
	cancel context.CancelCauseFunc
	cause  error // why the call ended, if it ended before real was made
}

// finished is the state of a call that was cancelled before its real context was made.
var finished = &callState{cause: context.Canceled}

// endedByParent is the state of a call whose parent was seen to have ended before the call.
var endedByParent = &callState{}

func (c *callContext) Deadline() (time.Time, bool) { return c.parent.Deadline() }

func (c *callContext) Err() error {
	for {
		switch s := c.state.Load(); {
		case s == nil:
			err := c.parent.Err()
			// A branch that saw the parent's error must not see another error: the call may be
			// about to end.
			if err == nil || c.state.CompareAndSwap(nil, endedByParent) {
				return err
			}
		case s == endedByParent:
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
		parent, ended := c.parent, s != nil && s != endedByParent
		if ended { // a later end of the parent must not change the cause
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

// end cancels the context. The first cause stays, even if the parent set it.
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
