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

// errLeader is errLink for a request whose answer a former leader of a part of the queue owed.
var errLeader = fmt.Errorf("%w, from a server that leads no longer", errLink)

// link is one connection, until it is lost.
type link struct {
	mu   sync.Mutex
	held lifetime  // until the connection is lost, or a part of the queue is made again
	led  lifetime  // until then, or until another server of the cluster leads a part of the queue
	lost time.Time // when either ended last, or deliveries may have been forgotten
	away error     // why the server refuses the login; nil: it does not

	silence silence
}

// lifetime is a context and what ends the context.
type lifetime struct {
	ctx context.Context
	end context.CancelCauseFunc
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
	for now := range events {
		if now == nats.CONNECTED {
			l.silence.anew()
			continue
		}
		l.renew(errLink)
	}
}

// renew cancels all pending requests.
func (l *link) renew(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held.ctx != nil {
		l.held.end(cause)
		l.lost = time.Now()
	}
	l.held.ctx, l.held.end = context.WithCancelCause(context.Background())
	l.led.ctx, l.led.end = context.WithCancelCause(l.held.ctx)
}

// doubt tells that the latest deliveries may be forgotten: a server of the cluster may have been killed, or a
// part of the queue is about to be made again. A new consumer may deliver a job as soon as the server has made
// the consumer.
func (l *link) doubt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = time.Now()
}

// newLeader cancels the pending requests whose answers a former leader may owe: they will not come.
// The new leader may have forgotten the latest deliveries, as a killed server may.
func (l *link) newLeader() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.led.end(errLeader)
	l.lost = time.Now()
	l.led.ctx, l.led.end = context.WithCancelCause(l.held.ctx)
}

// age returns how long ago pending requests were cancelled, if they ever were.
func (l *link) age() (past time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.lost), !l.lost.IsZero()
}

// current returns a context that ends when the connection is lost, and when another server of the
// cluster leads a part of the queue.
func (l *link) current() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.led.ctx
}

// connected returns a context that ends with parent and with the connection.
func (l *link) connected(parent context.Context) (context.Context, context.CancelFunc) {
	l.mu.Lock()
	held := l.held.ctx
	l.mu.Unlock()
	return endingWith(parent, held)
}

// during returns a context that ends with parent, with the connection, and when another server of
// the cluster leads a part of the queue.
func (l *link) during(parent context.Context) (context.Context, context.CancelFunc) {
	return endingWith(parent, l.current())
}

func endingWith(parent, other context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func() { stop(); cancel(nil) }
}

// asking returns a context for a request to the engine. The context ends with parent, after
// Config.Wait, and with the connection.
func (q *queue) asking(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(parent, q.cfg.Wait)
	ctx, leave := q.link.during(ctx)
	return ctx, func() { leave(); cancel() }
}
