package jetstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// errLink is the cause of a context that ended because the connection lost a pending answer.
var errLink = errors.New("the connection was lost before the answer came")

// errAnew is errLink for a request whose answer a deleted part of the queue may have lost.
var errAnew = fmt.Errorf("%w, from a part of the queue that was made again", errLink)

// link is one connection, until it is lost.
type link struct {
	mu   sync.Mutex
	held context.Context
	lose context.CancelCauseFunc
	lost time.Time // when the connection was lost last
	away error     // why the server refuses the login; nil: it does not
}

// login records why the server refuses the login, or nil once it does not. It reports whether a
// refusal is the first one.
func (l *link) login(err error) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first = l.away == nil
	l.away = err
	return first
}

// refusal returns why the server refuses the login, or nil.
func (l *link) refusal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.away
}

// watch cancels all pending requests whenever the connection is lost: their answers will not come.
// It returns when events is closed.
func (l *link) watch(events <-chan nats.Status) {
	for range events {
		l.renew(errLink)
	}
}

// renew cancels all pending requests.
func (l *link) renew(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lose != nil {
		l.lose(cause)
		l.lost = time.Now()
	}
	l.held, l.lose = context.WithCancelCause(context.Background())
}

// age returns how long ago pending requests were cancelled, if they ever were.
func (l *link) age() (past time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.lost), !l.lost.IsZero()
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

// asking returns a context for a request to the engine. The context ends with parent, after
// Config.Wait, and with the connection.
func (q *queue) asking(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(parent, q.cfg.Wait)
	ctx, leave := q.link.during(ctx)
	return ctx, func() { leave(); cancel() }
}
