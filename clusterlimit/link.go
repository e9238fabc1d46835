package clusterlimit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// link is what the member knows of the way to the engine. A server that is cut off from its cluster
// keeps its clients and answers none of their writes, so the member leaves it:
//
//	answered:   the latest write had an answer, or there was no request yet.
//	away:       there is no connection; the client library opens one.
//	unanswered: there is a connection, and requests had no answer. After unansweredTime, with another
//	            address to go to, the member reconnects, and again after a pause that doubles.
//
// Reads do not count as answered: a server that is cut off answers them from its copy.
type link struct {
	standing linkStanding
	began    time.Duration // of the first request since the latest answer
	since    time.Duration // of the first request since then without an answer on a connection
	next     time.Duration // the earliest time of the next reconnect
	pause    time.Duration
}

type linkStanding uint8

const (
	linkAnswered linkStanding = iota
	linkAway
	linkUnanswered
)

const (
	unansweredTime = 5 * time.Second
	firstWait      = 10 * time.Second // between reconnects; it doubles
	longestWait    = 80 * time.Second
)

// failed records a request that was sent at began and had no answer, or found no connection.
func (l *link) failed(began time.Duration, connected bool) {
	if l.standing == linkAnswered {
		l.began = began
	}
	switch {
	case !connected:
		l.standing = linkAway
	case l.standing != linkUnanswered:
		l.standing, l.since = linkUnanswered, began
	}
}

// leave reports whether it is time to reconnect, and if so, starts the pause.
func (l *link) leave(now time.Duration) bool {
	if l.standing != linkUnanswered || now-l.since < unansweredTime || now < l.next {
		return false
	}
	l.pause = min(max(2*l.pause, firstWait), longestWait)
	l.next = now + l.pause
	return true
}

// answered records an answer.
func (l *link) answered() { *l = link{} }

// silent reports whether an error means that there was no answer.
func silent(err error) bool {
	api, _ := errors.AsType[*jetstream.APIError](err)
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, jetstream.ErrNoStreamResponse) || api != nil && (api.ErrorCode == codeNotNow || api.Code >= 500)
}

// lost reports whether an error means that there was no connection.
func lost(err error) bool {
	return errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, nats.ErrDisconnected) || errors.Is(err, nats.ErrConnectionClosed) ||
		errors.Is(err, nats.ErrConnectionReconnecting)
}

// heard records the outcome of a request that was sent at began, and leaves a server that answers no
// writes.
func (m *Member) heard(began time.Duration, err error, isWrite bool) {
	switch {
	case errors.Is(err, context.Canceled): // by Close
	case silent(err), lost(err):
		m.link.failed(began, silent(err))
		if !m.alone() && m.conn.IsConnected() && m.link.leave(m.now()) {
			m.cfg.Logger.Warn("spillway budget: this server answers no requests: the member connects to another", "budget", m.cfg.Name,
				"server", m.conn.ConnectedUrlRedacted(), "unanswered", m.now()-m.link.since, "error", err)
			_ = m.conn.ForceReconnect() // its only error is of a closed connection, which open replaces
		}
	case isWrite:
		m.link.answered()
	}
}

// open opens the bucket, and first a new connection instead of one that is closed for good. Of the
// reasons for which the client library gives a connection up, most are errors that it does not know.
func (m *Member) open(ctx context.Context) (err error) {
	if m.conn != nil && m.conn.IsClosed() {
		cause := m.conn.LastError()
		conn, err := connect(ctx, m.cfg)
		if err != nil {
			return err
		}
		m.cfg.Logger.Warn("spillway budget: the engine had ended the connection for good: the member has opened another", "budget", m.cfg.Name, "error", cause)
		m.conn, m.kv = conn, nil
	}
	if m.kv == nil {
		began := m.now()
		m.kv, err = bucket(ctx, m.conn)
		m.heard(began, err, false) // a server that is cut off may still know the bucket
	}
	return err
}

// first renews until a renewal succeeds or ctx ends. If ctx has no deadline, it also ends when the
// engine has not answered for joinTime.
func (m *Member) first(ctx context.Context) error {
	_, bounded := ctx.Deadline()
	for n := 0; ; n++ {
		err := m.renew(ctx)
		if err == nil {
			return nil
		}
		again := (errors.Is(err, errBeaten) || silent(err) || lost(err)) && !(m.kv == nil && m.alone() && noJetStream(err))
		late := !bounded && m.link.standing != linkAnswered && m.now()-m.link.began >= joinTime
		if !again || late || sleep(ctx, jitter(n, m.cfg.Lease)) != nil {
			return m.inWords(err)
		}
	}
}

// alone reports whether the member has no other server to go to by itself.
func (m *Member) alone() bool {
	return m.conn == nil || len(m.conn.Servers()) < 2
}

// noJetStream reports whether an error means that nobody listens to requests for JetStream.
func noJetStream(err error) bool {
	return errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, nats.ErrNoResponders)
}

// noStream reports whether an error means that the bucket's stream may be lost, as with the disk of a
// server.
func noStream(err error) bool {
	api, _ := errors.AsType[*jetstream.APIError](err)
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) || api != nil && api.ErrorCode == jetstream.JSErrCodeStreamNotFound
}

// lacksPermission reports whether a connection's error is about permissions. Older client libraries have
// no error for that.
func lacksPermission(err error) bool {
	return err != nil && strings.Contains(strings.ToLower(err.Error()), nats.PERMISSIONS_ERR)
}

// inWords explains what was in the way of an attempt.
func (m *Member) inWords(err error) error {
	now, l := m.now(), m.link
	if m.conn != nil && errors.Is(err, context.DeadlineExceeded) && lacksPermission(m.conn.LastError()) {
		return fmt.Errorf("the engine has not answered for %v (%w), and the connection's latest error is %w: see the login's permissions", (now - l.began).Round(time.Millisecond), err, m.conn.LastError())
	}
	api, _ := errors.AsType[*jetstream.APIError](err)
	// The deadline may have come during a request. A silent engine leaves a request for a whole attempt.
	beaten := m.counts.conflicts > 0 && now-l.began < m.cfg.Lease/attempts/2
	switch {
	case errors.Is(err, nats.ErrConnectionClosed):
		return fmt.Errorf("the engine has ended the connection for good, and the member opens another (%w)", err)
	case m.conn != nil && lost(err):
		return inWords(err, m.conn.LastError())
	case errors.Is(err, context.DeadlineExceeded) && (l.standing == linkAnswered || beaten):
		return fmt.Errorf("%w (%w)", errBeaten, err)
	case errors.Is(err, nats.ErrNoResponders) && m.kv == nil && m.alone():
		return err
	case silent(err) && api != nil && api.ErrorCode != codeNotNow:
		return fmt.Errorf("the engine cannot do it at the moment, and is asked again (%w): see its limits, its disk and its log", err)
	case silent(err) && !m.alone() && m.conn.IsConnected():
		return fmt.Errorf("the server %s has not answered for %v, and another is tried after %v (%w): see whether it is cut off from its cluster or overloaded, or its JetStream has no leader",
			m.conn.ConnectedUrlRedacted(), (now - l.began).Round(time.Millisecond), unansweredTime, err)
	case silent(err):
		return fmt.Errorf("the engine has not answered for %v (%w): see whether it is overloaded, its JetStream has no leader, or Config.Lease is less than six round trips", (now - l.began).Round(time.Millisecond), err)
	}
	return err
}

// inWords explains an error of the client library: the library mentions a buffer when the
// connection is lost. last is the connection's latest error.
func inWords(err, last error) error {
	switch {
	case errors.Is(err, nats.ErrReconnectBufExceeded) && errors.Is(last, nats.ErrAuthorization):
		return fmt.Errorf("the engine refuses the login, and is tried again: see whether the credentials are right (%w)", last)
	case errors.Is(err, nats.ErrReconnectBufExceeded):
		return fmt.Errorf("the engine cannot be reached, and is tried again: see whether the NATS server runs (%w)", err)
	}
	return err
}
