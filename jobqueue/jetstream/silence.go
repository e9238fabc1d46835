package jetstream

import (
	"context"
	"errors"
	"sync"
	"time"

	js "github.com/nats-io/nats.go/jetstream"
)

const (
	// silentFor is how long all requests may be without an answer before another server is tried.
	silentFor = 5 * time.Second
	// firstPause is the pause before a further server is tried. Each pause is twice the one before,
	// up to lastPause: a cluster without a quorum is silent on all its servers.
	firstPause = 10 * time.Second
	lastPause  = 80 * time.Second
)

// silence finds out that a connected server answers no request. A server that is cut off from its
// cluster is such a server: the connection stays, and only another server can answer.
//
// A silence begins with the first request after the latest answer, or with the connection if that
// came later. Without a request that waits, or that had no answer, there is no silence.
type silence struct {
	connected func() bool
	move      func(past time.Duration) (moved bool) // connects to another server, if one is known
	first     time.Duration                         // silentFor, but in tests

	mu        sync.Mutex
	waiting   int           // requests that wait for an answer
	missed    bool          // a request of this silence had no answer
	since     time.Time     // the begin; zero: no silence
	length    time.Duration // the length at which another server is tried; zero: first
	announced bool          // another server was tried since the latest answer
	timer     *time.Timer   // calls check; nil: not set
	over      bool
}

// begin tells that a request is made. The caller calls end once.
func (s *silence) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting++
	if s.since.IsZero() {
		s.since = time.Now()
	}
	s.set(orElse(s.length, s.first))
}

// set starts the timer, unless the timer runs. It is called with mu held.
func (s *silence) set(d time.Duration) {
	if s.timer == nil && !s.over {
		s.timer = time.AfterFunc(d, s.check)
	}
}

// ended is how a request ended.
type ended uint8

const (
	withAnswer ended = iota
	withoutAnswer
	early // nobody waited for the answer
)

func (s *silence) end(how ended) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting--
	switch how {
	case withAnswer:
		if s.length > 0 && s.timer != nil { // set for a longer silence
			s.timer.Stop()
			s.timer = nil
		}
		s.missed, s.announced, s.length, s.since = false, false, 0, time.Now()
	case withoutAnswer:
		s.missed = true
	}
	if s.waiting == 0 && !s.missed {
		s.since = time.Time{}
	}
}

// anew tells that a connection was made.
func (s *silence) anew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missed = false
	if s.since = time.Now(); s.waiting == 0 {
		s.since = time.Time{}
	}
}

// check tries another server if the silence is long enough.
func (s *silence) check() {
	s.mu.Lock()
	s.timer = nil
	if s.over || s.since.IsZero() {
		s.mu.Unlock()
		return // the next request sets the timer
	}
	length, past := orElse(s.length, s.first), time.Since(s.since)
	if past < length || !s.connected() {
		s.set(max(length-past, retryPause))
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	moved := s.move(past)
	s.mu.Lock()
	defer s.mu.Unlock()
	if moved {
		s.announced, s.length = true, firstPause
		if length >= firstPause {
			s.length = min(2*length, lastPause)
		}
	}
	s.missed, s.since = false, time.Now()
	s.set(orElse(s.length, s.first))
}

// stop ends the timer.
func (s *silence) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if s.timer != nil {
		s.timer.Stop()
	}
}

// lasts reports whether another server was tried, and no server has answered since.
func (s *silence) lasts() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.announced
}

// endOf returns how a request ended that was made with ctx and returned err. parent is the context
// of the request's caller.
func endOf(parent, ctx context.Context, err error) ended {
	switch {
	case err == nil || isAnswer(err):
		return withAnswer
	case parent.Err() != nil || ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return early
	}
	return withoutAnswer
}

// isAnswer reports whether an error is the engine's answer. A server that is cut off from its
// cluster says that it cannot serve, with a code from 500 on.
func isAnswer(err error) bool {
	api, ok := errors.AsType[*js.APIError](err)
	return ok && api.Code < 500
}

// sent returns how a batch ended that was sent with ctx.
func sent(ctx context.Context, what outcome, err error) ended {
	switch {
	case what != uncertain:
		return withAnswer
	case errors.Is(err, errLink):
		return early
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return early
	}
	return withoutAnswer
}
