package jetstream

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"
)

// errLink is the cause of a context that ended because an answer on its way was lost.
var errLink = errors.New("the connection was lost before the answer came")

// errAnew is errLink of a question that a part of the queue may have taken along when it was deleted.
var errAnew = fmt.Errorf("%w, from a part of the queue that was made again", errLink)

// link is the connection until it is lost.
type link struct {
	mu   sync.Mutex
	held context.Context
	lose context.CancelCauseFunc
}

// watch ends what waits for an answer whenever the connection is lost: the answer will not
// come. It returns when events is closed.
func (l *link) watch(events <-chan nats.Status) {
	for range events {
		l.renew(errLink)
	}
}

// renew ends what waits for an answer.
func (l *link) renew(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lose != nil {
		l.lose(cause)
	}
	l.held, l.lose = context.WithCancelCause(context.Background())
}

// during returns a context that ends with parent and with the connection.
func (l *link) during(parent context.Context) (context.Context, context.CancelFunc) {
	l.mu.Lock()
	held := l.held
	l.mu.Unlock()
	ctx, cancel := context.WithCancelCause(parent)
	stop := context.AfterFunc(held, func() { cancel(context.Cause(held)) })
	return ctx, func() { stop(); cancel(nil) }
}

// asking returns a context for a question to the engine: it ends with parent, after
// Config.Wait, and with the connection.
func (q *queue) asking(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(parent, q.cfg.Wait)
	ctx, leave := q.link.during(ctx)
	return ctx, func() { leave(); cancel() }
}
