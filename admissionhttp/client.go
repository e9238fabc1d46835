package admissionhttp

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// usualClientTimeout is the ClientTimeout of a zero Config.
const usualClientTimeout = 30 * time.Second

// waits counts how often a request waits for its client in one direction: waits that go on in the low
// bits, and moves above. Each begin, end and piece is a move. Zero: never.
type waits struct{ atomic.Uint64 }

const (
	oneWait = 1
	oneMove = 1 << 16
	goingOn = oneMove - 1
)

// wait says that the request waits for its client from here on.
func (w *work) wait(on *waits) {
	if !w.listed.Load() && w.guard.clients.timeout > 0 && !w.left.Load() {
		w.guard.clients.watch(w)
	}
	on.Add(oneMove + oneWait)
	w.permit.Pause()
	if g := w.guard; g.shares != nil {
		g.shares.Pause(time.Since(g.shedding.base), &w.ticket)
	}
}

// goOn ends a wait.
func (w *work) goOn(on *waits) {
	w.permit.Resume()
	if g := w.guard; g.shares != nil {
		g.shares.Resume(time.Since(g.shedding.base), &w.ticket)
	}
	on.Add(oneMove - oneWait)
}

// clients ends requests whose client does not move. A sweep looks at all requests that have waited
// for a client, four times in a timeout. No deadline is set before a client is gone: a deadline of
// HTTP/2 would end a stream whose handler computes, and one of the server must not become later.
type clients struct {
	timeout time.Duration // zero: clients have any time

	mu       sync.Mutex
	first    *work // requests that have waited, linked by sight
	sweeping bool  // a sweep will come
}

// sight is a request among those that have waited, and what the latest sweep saw of the request.
// clients.mu guards a sight.
type sight struct {
	previous, next   *work
	reading, writing still
	gone             bool // the client did not move
}

// still is for how many sweeps in a row a wait goes on without a move.
type still struct {
	moves  uint32
	sweeps uint8
}

// sweeps is how many sweeps after the first find a client still before it is gone. So a client has
// between one timeout and a quarter more.
const sweeps = 4

// forTooLong reports whether the client is gone.
func (s *still) forTooLong(on *waits) bool {
	now := on.Load()
	if moves := uint32(now / oneMove); now&goingOn == 0 || moves != s.moves {
		*s = still{moves: moves}
		return false
	}
	s.sweeps = min(s.sweeps+1, sweeps)
	return s.sweeps == sweeps
}

// watch begins to look at w.
func (c *clients) watch(w *work) {
	c.mu.Lock()
	if !w.listed.Swap(true) && !w.left.Load() { // leave looks at listed after it has set left
		if w.sight.next = c.first; c.first != nil {
			c.first.sight.previous = w
		}
		if c.first = w; !c.sweeping {
			c.sweepLater()
		}
	}
	c.mu.Unlock()
}

// leave ends the watch, and reports whether the client is gone. No deadline is set after leave has
// returned.
func (c *clients) leave(w *work) (gone bool) {
	s := &w.sight
	c.mu.Lock()
	if s.next != nil {
		s.next.sight.previous = s.previous
	}
	if s.previous != nil {
		s.previous.sight.next = s.next
	} else if c.first == w {
		c.first = s.next
	}
	s.previous, s.next = nil, nil // a handler may keep w
	gone = s.gone
	c.mu.Unlock()
	return gone
}

func (c *clients) sweepLater() {
	c.sweeping = true
	time.AfterFunc(max(c.timeout/sweeps, time.Millisecond), c.sweep)
}

// sweep ends when no request is left.
func (c *clients) sweep() {
	var of *guard // has clients that are gone
	c.mu.Lock()
	for w := c.first; w != nil; w = w.sight.next {
		s, answers := &w.sight, w.writing.Load() > 0
		reads, writes := s.reading.forTooLong(&w.reading), s.writing.forTooLong(&w.writing)
		// Once the answer has begun, a silent client may wait for more of the answer.
		if (writes || reads && !answers) && w.guard.enforces(w.class, w.dryRun) {
			if !s.gone {
				of = w.guard
				of.silent.new.Add(1)
			}
			// A Read that does not end at its deadline writes: 100 Continue.
			w.hangUp(writes || s.gone)
			s.gone = true
		}
	}
	if c.sweeping = c.first != nil; c.sweeping {
		c.sweepLater()
	}
	c.mu.Unlock()
	if of != nil {
		of.tell(&of.silent, "clients that neither sent nor took anything were cut off")
	}
}

// hangUp ends what waits for the client.
func (w *work) hangUp(writes bool) {
	// Writers that belong to no connection know no deadlines.
	control, past := http.NewResponseController(w.ResponseWriter), time.Unix(1, 0)
	_ = control.SetReadDeadline(past) // net/http also reads the rest of a body before it writes
	if writes {
		_ = control.SetWriteDeadline(past)
	}
}

// leave gives the connection away: back to net/http, or to who has hijacked it.
func (w *work) leave(r *http.Request) {
	if !w.left.Swap(true) && w.listed.Load() {
		w.endWatch(r)
	}
}

func (w *work) endWatch(r *http.Request) {
	gone := w.guard.clients.leave(w)
	if slow := w.written > piece || w.sight.writing.moves > 0; slow && !gone && r != nil && w.writing.Load() > 0 && !w.bounded.Load() {
		w.boundRest(r)
	}
}

// boundRest bounds how long net/http writes what it has kept of a long or slow answer, unless somebody
// else does. The deadline costs more than a short answer. net/http removes the deadline before the next
// request of the connection.
func (w *work) boundRest(r *http.Request) {
	s, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	if ok && s.WriteTimeout <= 0 && w.guard.enforces(w.class, w.dryRun) {
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.guard.clients.timeout))
	}
}

// SetWriteDeadline is what http.ResponseController calls.
func (w *work) SetWriteDeadline(t time.Time) error {
	w.bounded.Store(!t.IsZero())
	return http.NewResponseController(w.ResponseWriter).SetWriteDeadline(t)
}

// tally counts events for the log.
type tally struct{ new, logged atomic.Int64 }

// tell logs how often an event came, at most once per logEvery.
func (g *guard) tell(t *tally, message string) {
	if g.logger != nil && due(&t.logged, g.shedding.now(), logEvery) {
		g.logger.LogAttrs(context.Background(), slog.LevelWarn, message, slog.Int64("requests", t.new.Swap(0)))
	}
}
