package main

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// watch reads a byte ahead while a handler runs, so that its context ends when
// the client disconnects, and sets every deadline that net/http sets for a request.
type watch struct {
	net.Conn
	gone context.CancelFunc

	mu      sync.Mutex
	ended   sync.Cond
	since   atomic.Int64 // when the connection became idle
	reading bool
	stopped bool
	taken   bool // never
	ahead   bool // next holds a byte
	next    [1]byte
}

func newWatch(c net.Conn) *watch {
	w := &watch{Conn: c}
	w.ended.L = &w.mu
	return w
}

var never, past = time.Time{}, time.Unix(1, 0)

// start begins to read ahead. gone is called if the client disconnects.
func (w *watch) start(gone context.CancelFunc) {
	_ = w.SetReadDeadline(never) // of the whole request
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = gone
	if w.ahead {
		return
	}
	w.reading = true
	_ = w.SetReadDeadline(never) // of the background read
	go w.read()
}

func (w *watch) read() {
	n, err := w.Conn.Read(w.next[:])
	w.mu.Lock()
	w.ahead = n == 1
	if err != nil && !w.stopped {
		w.gone()
	}
	w.stopped, w.reading = false, false
	w.mu.Unlock()
	w.ended.Broadcast()
}

// stop ends the reading ahead, whose byte is read next, and sets what net/http sets
// between two requests.
func (w *watch) stop() {
	w.mu.Lock()
	if w.reading {
		w.stopped = true
		_ = w.SetReadDeadline(past)
		for w.reading {
			w.ended.Wait()
		}
		_ = w.SetReadDeadline(never)
	}
	w.mu.Unlock()
	w.since.Store(time.Now().Unix())
	_ = w.SetWriteDeadline(never)
	_ = w.SetReadDeadline(never) // of the idle connection
	_ = w.SetReadDeadline(never) // of the next head
}

// mine is net/http's check before each write of a handler, under the lock of the
// connection: whether it was hijacked. Here it cannot be. A nil watch need not check.
func (w *watch) mine() bool {
	if w == nil {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.taken
}

// Read gives the byte that was read ahead first.
func (w *watch) Read(b []byte) (int, error) {
	w.mu.Lock()
	ahead := w.ahead && len(b) > 0
	if ahead {
		w.ahead, b[0] = false, w.next[0]
	}
	w.mu.Unlock()
	if ahead {
		return 1, nil
	}
	return w.Conn.Read(b)
}
