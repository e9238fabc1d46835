package admissionhttp

import (
	"context"
	"net/http"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/priority"
)

// usual has the deadlines of Config, by priority; 0: none.
type usual [priority.Levels]time.Duration

// usualOf completes the entries of Config.Deadlines.
func usualOf(entries map[spillway.Priority]time.Duration) (all usual) {
	for lv := range all {
		nearest := priority.Levels
		for p, d := range entries {
			switch away := max(lv-priority.Level(p), priority.Level(p)-lv); {
			case away < nearest:
				nearest, all[lv] = away, d
			case away == nearest && d > 0 && (d < all[lv] || all[lv] == 0):
				all[lv] = d
			}
		}
	}
	return all
}

// limits returns the context limited, in which r waits and runs. A request that only claims to be a
// stream is limited like other requests; lasting is then the context that applies once the request
// is a stream. For other requests, lasting is limited. Both are ctx if limits adds no deadline. said and
// usual are from deadlines.
func (g *guard) limits(ctx context.Context, r *http.Request, stream bool, said, usual time.Duration) (limited, lasting context.Context, cancel context.CancelFunc) {
	switch {
	case usual < 0:
	case g.long != nil && stream:
		usual = -1
	case g.long == nil && announced(r):
		lasting, cancelLasting := within(ctx, said)
		limited, cancelLimited := within(lasting, usual)
		return limited, lasting, func() { cancelLimited(); cancelLasting() }
	case said < 0 || usual < said:
		said = usual
	}
	limited, cancel = within(ctx, said)
	return limited, limited, cancel
}

// leastLeft is the least time that remains of the time in the header, however long the delay was.
// So the limiter decides about the request.
const leastLeft = time.Millisecond

// deadlines returns how long r may take: said by its header, usual by the configuration. Negative:
// no limit. The header gives the time left when r was sent. The delay is how long r has waited for a
// processor since, and is subtracted from said.
func (g *guard) deadlines(ctx context.Context, r *http.Request, delay time.Duration) (said, usual time.Duration) {
	said, usual = -1, -1
	if g.header != "" {
		if text := r.Header[g.header]; len(text) == 1 {
			if d, ok := parseDeadline(text[0]); ok {
				said = max(d-delay, min(d, leastLeft))
			}
		}
	}
	if g.limited {
		if d := g.usual[priority.Level(spillway.PriorityFrom(ctx))]; d > 0 {
			usual = d
		}
	}
	return said, usual
}

// within returns ctx with a deadline after d, unless d is negative or ctx ends before.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d < 0 {
		return ctx, func() {}
	}
	if own, ok := ctx.Deadline(); ok && time.Until(own) <= d {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d)
}

// untilProven returns a context that ends with limited until proven is called, and
// with lasting in any case.
func untilProven(lasting, limited context.Context) (ctx context.Context, proven func() bool, cancel context.CancelFunc) {
	ctx, end := context.WithCancelCause(lasting)
	proven = context.AfterFunc(limited, func() { end(context.Cause(limited)) })
	return ctx, proven, func() { proven(); end(nil) }
}
