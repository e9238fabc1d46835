package loadgen

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// doubtAfter is how long a connection may be idle before it is asked whether it is
// still open. Servers close idle connections after seconds at the earliest.
const doubtAfter = time.Second

var errNoAnswer = errors.New("the server closed the connection before it answered")

// connections are the kept-alive connections to one host: as many as requests were
// in flight at one time, or as many as there are places.
type connections struct {
	address string
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	places  chan struct{} // a token for each connection in use; nil: no bound

	mu   sync.Mutex
	idle []*conn // the one that was used last is taken first
}

func newConnections(address string, most int) *connections {
	cs := &connections{address: address, dial: new(net.Dialer).DialContext}
	if most > 0 {
		cs.places = make(chan struct{}, most)
	}
	return cs
}

// call is one request on its way.
type call struct {
	ctx      context.Context
	began    time.Time
	deadline time.Time // zero: none
	toHEAD   bool
	repeats  bool // sending it twice does no harm
	closes   bool // the connection ends with the answer
}

// send sends the request that write returns, and reads its answer. It returns the
// connection, which holds the answer's body if wants returned true, and which the
// caller gives back with done.
//
// A kept-alive connection may have been closed by the server since. If it ends
// without a byte of an answer, the request is sent once more, over a new one,
// unless the server may have acted on it.
func (cs *connections) send(x call, write func(*conn) []byte, wants func(status int) bool) (status int, c *conn, err error) {
	if err := cs.enter(x); err != nil {
		return 0, nil, err
	}
	c = cs.takeIdle(x.began)
	for {
		reused := c != nil
		if !reused {
			if c, err = cs.open(x); err != nil {
				cs.leave()
				return 0, nil, err
			}
		}
		status, err = c.exchange(x, write(c), wants)
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

// cause says what an error of a connection comes from: its deadline is the request's.
func (x *call) cause(err error) error {
	switch {
	case x.ctx.Err() != nil:
		return x.ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return context.DeadlineExceeded
	}
	return err
}

// enter waits for a place.
func (cs *connections) enter(x call) error {
	if cs.places == nil {
		return x.ctx.Err()
	}
	select {
	case cs.places <- struct{}{}:
		return nil
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
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (cs *connections) leave() {
	if cs.places != nil {
		<-cs.places
	}
}

// takeIdle returns a connection that is open as far as can be known, or nil.
func (cs *connections) takeIdle(now time.Time) *conn {
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
		if now.Sub(c.used) < doubtAfter || c.quiet() {
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
	return &conn{Conn: nc, answers: newAnswers(nc)}, nil
}

// conn is a connection with its buffers. One goroutine uses it at a time.
type conn struct {
	net.Conn
	answers answers
	out     []byte // the request
	filled  []byte // its body, if it has placeholders
	body    []byte // of the answer, if somebody looks at it
	written int    // bytes of the request
	keep    bool   // after the answer
	used    time.Time

	mu      sync.Mutex // orders the end of a context and the next request
	busy    bool
	limited bool            // there is a deadline, of this request or one before
	watched <-chan struct{} // Done of the context whose end interrupts
	unwatch func() bool
}

// exchange writes a request and reads the answer.
func (c *conn) exchange(x call, request []byte, wants func(status int) bool) (status int, err error) {
	c.written, c.answers.begun = 0, false
	if err := c.begin(x); err != nil {
		return 0, err
	}
	defer c.end(x)
	written, writeErr := c.Write(request)
	c.written = written
	if writeErr != nil && errors.Is(writeErr, os.ErrDeadlineExceeded) {
		return 0, writeErr
	}
	// A server may refuse and close before it has read the request: then its
	// answer is there although the writing failed.
	h, err := c.answers.head(x.toHEAD)
	if err == nil {
		c.body = c.body[:0]
		dst := &c.body
		if !wants(h.status) {
			dst = nil
		}
		if err = c.answers.body(h.length, dst); err != nil {
			err = bodyError(err)
		}
	}
	switch {
	case err != nil && writeErr != nil:
		return 0, writeErr
	case err == io.ErrUnexpectedEOF && !c.answers.begun:
		return 0, errNoAnswer
	case err != nil:
		return 0, err
	}
	// What follows the answer unasked does not belong to the next request.
	c.keep = h.keep && !x.closes && writeErr == nil && c.answers.r == c.answers.w
	return h.status, nil
}

// begin makes the request's deadline the connection's, and the end of its context
// an interruption. The context is watched from request to request while it stays
// the same, as it does in a run without Config.Timeout: then nothing is allocated.
func (c *conn) begin(x call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = true
	if done := x.ctx.Done(); done != c.watched {
		c.forget()
		if done != nil {
			c.watched = done
			c.unwatch = context.AfterFunc(x.ctx, func() { c.interrupt(done) })
		}
	}
	if limit := !x.deadline.IsZero(); limit || c.limited {
		c.limited = limit
		if err := c.SetDeadline(x.deadline); err != nil {
			return err
		}
	}
	return x.ctx.Err() // after the deadline is set: an earlier interruption is not lost
}

func (c *conn) end(x call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = false
	if _, own := x.ctx.Deadline(); own { // the context of one request ends now
		c.forget()
	}
}

// interrupt ends reads and writes of a request whose context has ended.
func (c *conn) interrupt(done <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy && c.watched == done {
		c.limited = true
		_ = c.SetDeadline(time.Unix(1, 0))
	}
}

func (c *conn) forget() {
	if c.unwatch != nil {
		c.unwatch()
		c.unwatch, c.watched = nil, nil
	}
}

// quiet reports whether an idle connection is still open.
func (c *conn) quiet() bool {
	return c.SetDeadline(time.Time{}) == nil && alive(c.Conn)
}

func (c *conn) close() {
	c.mu.Lock()
	c.forget()
	c.mu.Unlock()
	_ = c.Close()
}
