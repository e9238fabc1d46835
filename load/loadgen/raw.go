package loadgen

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"
)

// doubtAfter is how long a connection may be idle before a request that can be repeated checks it
// for being open. Servers close idle connections after seconds at the earliest.
const doubtAfter = time.Second

// connections are the kept-alive connections to one host: as many as the most requests in flight so
// far, and at most as many as there are places.
type connections struct {
	address string
	traffic *traffic
	dial    dialer
	places  chan struct{} // a token for each connection in use; nil: no bound

	mu   sync.Mutex
	idle []*conn // the most recently used connection is taken first
}

func newConnections(address string, most int, dial dialer, counted *traffic) *connections {
	cs := &connections{address: address, traffic: counted, dial: dial}
	if most > 0 {
		cs.places = make(chan struct{}, most)
	}
	return cs
}

// call is one request to send.
type call struct {
	ctx      context.Context
	began    time.Time
	deadline time.Time // zero: none
	toHEAD   bool
	repeats  bool // sending the request twice does no harm
	closes   bool // the connection ends with the answer
}

// send sends the request that write returns, and reads its answer. It returns the connection, which
// the caller gives back with done. The connection holds the body of the answer if wants returned
// true.
//
// The server may have closed a kept-alive connection in the meantime. If a reused connection ends
// without a byte of an answer, send repeats the request once, over a new connection, unless the
// server may have acted on the request. A request that must not be repeated checks its connection
// first.
func (cs *connections) send(x call, write func(*conn) []byte, wants func(status int) bool) (status int, c *conn, err error) {
	waited, err := cs.enter(x)
	if err != nil {
		return 0, nil, err
	}
	if waited {
		x.began = time.Now()
	}
	c = cs.takeIdle(x)
	for {
		reused := c != nil
		if !reused {
			if c, err = cs.open(x); err != nil {
				cs.leave()
				return 0, nil, err
			}
		} else {
			c.sent = x.began
		}
		status, err = c.exchange(x, write(c), wants)
		cs.traffic.add(c.written, c.answers.came)
		if err == nil {
			return status, c, nil
		}
		c.close()
		if !reused || c.answers.begun || !x.repeats && c.written > 0 || x.ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded) {
			cs.leave()
			return 0, nil, x.cause(err)
		}
		c = nil
	}
}

// cause returns the origin of a connection error: the request's context or deadline, or err itself.
func (x *call) cause(err error) error {
	switch {
	case x.ctx.Err() != nil:
		return x.ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return context.DeadlineExceeded
	}
	return err
}

// enter gets a place, and reports whether it had to wait.
func (cs *connections) enter(x call) (waited bool, err error) {
	if cs.places == nil {
		return false, x.ctx.Err()
	}
	select {
	case cs.places <- struct{}{}:
		return false, nil
	default:
	}
	ctx := x.ctx
	if !x.deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, x.deadline)
		defer cancel()
	}
	select {
	case cs.places <- struct{}{}:
		return true, nil
	case <-ctx.Done():
		return true, ctx.Err()
	}
}

func (cs *connections) leave() {
	if cs.places != nil {
		<-cs.places
	}
}

// takeIdle returns an idle connection that is not known to be closed, or nil.
func (cs *connections) takeIdle(x call) *conn {
	for {
		cs.mu.Lock()
		last := len(cs.idle) - 1
		if last < 0 {
			cs.mu.Unlock()
			return nil
		}
		c := cs.idle[last]
		cs.idle[last] = nil
		cs.idle = cs.idle[:last]
		cs.mu.Unlock()
		if x.repeats && x.began.Sub(c.used) < doubtAfter || c.quiet() {
			return c
		}
		c.close()
	}
}

// done takes a connection back after a complete answer.
func (cs *connections) done(c *conn, now time.Time) {
	if c.keep {
		c.used = now
		cs.mu.Lock()
		cs.idle = append(cs.idle, c)
		cs.mu.Unlock()
	} else {
		c.close()
	}
	cs.leave()
}

func (cs *connections) closeIdle() {
	cs.mu.Lock()
	idle := cs.idle
	cs.idle = nil
	cs.mu.Unlock()
	for _, c := range idle {
		c.close()
	}
}

func (cs *connections) open(x call) (*conn, error) {
	ctx := x.ctx
	if !x.deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, x.deadline)
		defer cancel()
	}
	nc, err := cs.dial(ctx, "tcp", cs.address)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	return &conn{Conn: nc, answers: newAnswers(nc), sent: time.Now()}, nil
}
