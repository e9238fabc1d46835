package admissiongrpc

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limiter"
)

// call is the interceptors' state of one call.
type call struct {
	of      *Interceptor
	method  string
	caller  context.Context // with the caller's own deadline
	handler context.Context // for the handler
	wait    context.Context // for the limiter, with the deadline of Config.Deadlines
	request limiter.Request
}

// newCall reads the priority, cost, kind and length of a call. Only short work gets a deadline. Call
// cancel at the end.
func (i *Interceptor) newCall(ctx context.Context, fullMethod string, short bool) (c call, cancel context.CancelFunc) {
	c = call{of: i, method: fullMethod, caller: ctx}
	c.request.Long = i.cfg.Long != nil && i.cfg.Long(fullMethod)
	p := spillway.PriorityFrom(ctx)
	if i.cfg.Priority != nil {
		p = i.cfg.Priority(ctx, fullMethod)
	}
	if spillway.KindFrom(ctx) == "" { // otherwise the limiter takes the kind of the context
		c.request.Kind = fullMethod
	}
	if i.cfg.Cost != nil {
		c.request.Cost = i.cfg.Cost(ctx, fullMethod)
	}
	if i.cfg.Trusted != nil && i.cfg.Trusted(ctx) {
		said := readMetadata(ctx)
		if said.hasPriority {
			p = said.priority
		}
		c.request.Cost = cmp.Or(said.cost, c.request.Cost)
	}
	if p != spillway.PriorityFrom(ctx) {
		ctx = spillway.WithPriority(ctx, p) // the limiter reads the priority too
	}
	c.handler, c.wait, cancel = ctx, ctx, func() {}
	if d := i.cfg.Deadlines[min(max(p, spillway.Low), spillway.Critical)]; d > 0 && short && !c.request.Long {
		c.wait, cancel = context.WithTimeout(ctx, d) // never later than the deadline of ctx
		if c.enforced() {
			c.handler = c.wait
		}
	}
	return c, cancel
}

// limiter returns the limiter of the call, for immediate use.
func (c *call) limiter() (*limiter.Limiter, error) {
	if c.of.cfg.Keyed != nil {
		return c.of.cfg.Keyed.Get(c.key())
	}
	return c.of.cfg.Limiter, nil
}

func (c *call) key() string {
	if class := c.of.cfg.Class; class != nil {
		return class(c.method)
	}
	return c.method
}

// scope is the context of a handler, and tells interceptors inside which limiter has been asked.
type scope struct {
	context.Context
	of    *Interceptor
	key   string      // of Config.Keyed
	ended atomic.Bool // the call holds no slot any more
}

type scopeKey struct{} // for the nearest scope

func (c *call) scope() *scope {
	s := &scope{Context: c.handler, of: c.of}
	if c.of.cfg.Keyed != nil {
		s.key = c.key()
	}
	return s
}

func (s *scope) Value(key any) any {
	if key == (scopeKey{}) {
		return s
	}
	return s.Context.Value(key)
}

// admitted reports whether an interceptor outside has asked the limiter that i would ask for the call. A
// second slot would be waited for with the first one held.
func (i *Interceptor) admitted(ctx context.Context, fullMethod string) bool {
	for {
		outer, _ := ctx.Value(scopeKey{}).(*scope)
		switch {
		case outer == nil:
			return false
		case outer.of.cfg.Limiter != i.cfg.Limiter || outer.of.cfg.Keyed != i.cfg.Keyed || outer.ended.Load():
		case i.cfg.Keyed == nil:
			return true
		default:
			if inner := (&call{of: i, method: fullMethod}); inner.key() == outer.key {
				return true
			}
		}
		ctx = outer.Context
	}
}

// enforced reports whether decisions about the call take effect.
func (c *call) enforced() bool {
	lim, err := c.limiter()
	return err != nil || lim.Mode() == limiter.Enforce
}

// acquire asks the limiter. The error is the answer to the caller.
func (c *call) acquire() (permit limiter.Permit, err error) {
	if keyed := c.of.cfg.Keyed; keyed != nil {
		permit, err = keyed.AcquireWith(c.wait, c.key(), c.request)
	} else {
		permit, err = c.of.cfg.Limiter.AcquireWith(c.wait, c.request)
	}
	switch {
	case err == nil:
		return permit, nil
	case errors.Is(err, spillway.ErrRejected):
	case !c.enforced():
		return permit, nil // the handler deals with a context that has ended
	}
	err = Refuse(c.caller, err)
	if !hasStatus(err) {
		// A mistake in KeyedConfig.New: callers must not see its error text.
		err = status.Error(codes.Internal, "admission is not configured")
	}
	return permit, err
}
