package fanout

import (
	"context"
	"sync"
	"time"
)

// callContext is the context of a parallel call's branches. It is cancelled with
// a cause, as by context.WithCancelCause, but allocates nothing until a branch
// asks for more than its error or its deadline: many never do.
type callContext struct {
	parent context.Context

	mu     sync.Mutex
	made   context.Context // what it stands for, once somebody needs it
	cancel context.CancelCauseFunc
	err    error // once it has ended
	cause  error
}

func (c *callContext) Deadline() (time.Time, bool) { return c.parent.Deadline() }

func (c *callContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.made != nil:
		return c.made.Err()
	case c.err != nil:
		return c.err
	}
	return c.parent.Err()
}

func (c *callContext) Done() <-chan struct{} { return c.make().Done() }

// Value asks the real context, because that is how context.Cause and derived
// contexts find it.
func (c *callContext) Value(key any) any { return c.make().Value(key) }

func (c *callContext) make() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made, c.cancel = context.WithCancelCause(c.parent)
		if c.err != nil {
			c.cancel(c.cause)
		}
	}
	return c.made
}

// end cancels the context. The first cause stays, also that of the parent.
func (c *callContext) end(cause error) {
	c.mu.Lock()
	if c.err == nil {
		c.err, c.cause = context.Canceled, cause
		if err := c.parent.Err(); err != nil {
			c.err, c.cause = err, context.Cause(c.parent)
		}
	}
	cancel, cause := c.cancel, c.cause
	c.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
}

type noHedging struct{}

// WithoutHedging returns a context under which nothing is hedged, for a caller
// that knows of an overload before this package sees it.
func WithoutHedging(ctx context.Context) context.Context {
	return context.WithValue(ctx, noHedging{}, true)
}
