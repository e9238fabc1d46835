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

var errNoAnswer = errors.New("the server closed the connection before it answered")

// conn is a connection with its buffers. One goroutine uses it at a time.
type conn struct {
	net.Conn
	answers answers
	out     []byte        // the request
	filled  []byte        // the request's body, if it has placeholders
	body    []byte        // the answer's body, if wanted
	written int           // bytes written of the request
	keep    bool          // the connection can be used again
	after   time.Duration // Retry-After of the answer
	sent    time.Time     // when the request was begun on this connection
	used    time.Time
	peeker  peeker

	mu      sync.Mutex // orders the end of a context and the next request
	busy    bool
	limited bool            // a deadline is set, for this request or an earlier one
	watched <-chan struct{} // Done of the context whose end interrupts the request
	unwatch func() bool
}

// exchange writes a request and reads the answer.
func (c *conn) exchange(x call, request []byte, wants func(status int) bool) (status int, err error) {
	c.written, c.after, c.answers.begun, c.answers.came = 0, 0, false, 0
	if err := c.begin(x); err != nil {
		return 0, err
	}
	defer c.end(x)
	written, writeErr := c.Write(request)
	c.written = written
	if writeErr != nil && errors.Is(writeErr, os.ErrDeadlineExceeded) {
		return 0, writeErr
	}
	// A server may refuse and close before it has read the request. Then an answer is there
	// although the write failed.
	h, err := c.answers.head(x.toHEAD)
	if err == nil {
		c.after, c.body = h.after, c.body[:0]
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
	// Unrequested bytes after the answer do not belong to the next request.
	c.keep = h.keep && !x.closes && writeErr == nil && c.answers.r == c.answers.w
	return h.status, nil
}

// begin sets the request's deadline on the connection, and makes the end of the request's context
// interrupt it. The context stays watched from request to request while it is the same, as in a run
// without Config.Timeout: then nothing is allocated.
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

// quiet reports whether an idle connection is still open and silent.
func (c *conn) quiet() bool { return c.peeker.alive(c.Conn) }

func (c *conn) close() {
	c.mu.Lock()
	c.forget()
	c.mu.Unlock()
	_ = c.Close()
}
