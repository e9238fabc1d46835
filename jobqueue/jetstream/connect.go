package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/spillway-go/spillway/jobqueue"
)

func (q *queue) connect(ctx context.Context) error {
	options := append([]nats.Option{
		nats.Name("spillway jobs " + q.cfg.Name), nats.ReconnectBufSize(-1), nats.Timeout(q.cfg.Wait),
		nats.ReconnectWait(100 * time.Millisecond), nats.ReconnectJitter(100*time.Millisecond, 500*time.Millisecond),
	}, q.cfg.Options...)
	options = append(options, forEver, q.listen)
	if q.local != nil {
		options = append(options, nats.InProcessServer(q.local))
	}
	for {
		nc, err := nats.Connect(q.cfg.URL, options...)
		if err == nil {
			q.nc = nc
			break
		}
		if errors.Is(err, nats.ErrAuthorization) || !pause(ctx, retryPause) {
			return fmt.Errorf("%w: connecting: %w", jobqueue.ErrUnavailable, err)
		}
	}
	client, err := js.New(q.nc, js.WithDefaultTimeout(q.cfg.Wait))
	q.js = client
	if err = errors.Join(err, q.answers.subscribe(q.nc)); err != nil {
		q.nc.Close()
	}
	return err
}

// listen has the queue told what happens to the connection, before the handlers of
// Config.Options are.
func (q *queue) listen(o *nats.Options) error {
	log := q.cfg.Logger.With("queue", q.cfg.Name)
	closed, lost, back, fault := o.ClosedCB, o.DisconnectedErrCB, o.ReconnectedCB, o.AsyncErrorCB
	o.ClosedCB = func(nc *nats.Conn) {
		if q.closing.Err() == nil { // otherwise the connection was closed here
			q.fail(nc.LastError())
		}
		if closed != nil {
			closed(nc)
		}
	}
	o.DisconnectedErrCB = func(nc *nats.Conn, err error) {
		if q.closing.Err() == nil && err != nil { // otherwise the connection was ended here
			log.Warn("connection to the job engine lost", "error", err)
		}
		if lost != nil {
			lost(nc, err)
		}
	}
	o.ReconnectedCB = func(nc *nats.Conn) {
		q.link.login(nil)
		log.Info("connection to the job engine is back", "server", nc.ConnectedUrlRedacted())
		if back != nil {
			back(nc)
		}
		q.mend(q.closing, true) // the engine may have come back without its data
	}
	o.AsyncErrorCB = func(nc *nats.Conn, s *nats.Subscription, err error) {
		switch {
		case !refusesLogin(err):
			log.Warn("job engine", "error", err)
		case q.link.login(err):
			log.Error("the job engine refuses the login, and is tried again: see whether the credentials are right", "error", err)
		}
		if fault != nil {
			fault(nc, s, err)
		}
	}
	return nil
}

// forEver makes a connection try again until it is closed here. A connection that gives up stays
// closed: after two refused logins, which is the client library's default, or after a number of
// tries.
func forEver(o *nats.Options) error {
	o.AllowReconnect, o.MaxReconnect, o.IgnoreAuthErrorAbort = true, -1, true
	return nil
}

// refusesLogin reports whether a server's error is about the credentials.
func refusesLogin(err error) bool {
	for _, sign := range []error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired} {
		if errors.Is(err, sign) {
			return true
		}
	}
	return false
}

// answerByAnswer hides the deadline of a context, so that each request to the engine gets the
// client's own timeout, which is Config.Wait.
type answerByAnswer struct{ context.Context }

func (answerByAnswer) Deadline() (time.Time, bool) { return time.Time{}, false }

// moved connects to another server of the URL or of its cluster, and reports whether one is known.
func (q *queue) moved(silent time.Duration) bool {
	if len(q.nc.Servers()) < 2 || q.closing.Err() != nil {
		return false
	}
	q.cfg.Logger.Error("the job engine is connected and answers nothing: another of its servers is tried",
		"queue", q.cfg.Name, "server", q.nc.ConnectedUrlRedacted(), "silent", silent.Round(time.Second))
	return q.nc.ForceReconnect() == nil
}

// elsewhere connects Open to another server, if err is a reason to, and reports whether it did.
func (q *queue) elsewhere(ctx context.Context, err error) bool {
	if !errors.Is(q.unavailable(ctx, err), jobqueue.ErrUnavailable) || !q.moved(q.cfg.Wait) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, q.cfg.Wait)
	defer cancel()
	for !q.nc.IsConnected() {
		if !pause(ctx, retryPause) {
			return false
		}
	}
	return true
}

// fail ends the queue: the client library has closed the connection, and opens no other.
func (q *queue) fail(why error) {
	if why == nil {
		why = nats.ErrConnectionClosed
	}
	q.cfg.Logger.Error("the job engine has ended the connection for good, Work ends: open the queue again, or restart the process",
		"queue", q.cfg.Name, "error", why)
	q.close(fmt.Errorf("%w: it has ended the connection for good (%w): open the queue again, or restart the process", jobqueue.ErrUnavailable, why))
	q.shut(false)
}

// failed returns why the connection is closed, though the queue is not, or nil.
func (q *queue) failed() error {
	if cause := context.Cause(q.closing); !errors.Is(cause, jobqueue.ErrLost) {
		return cause
	}
	return nil
}

// leaderElected is the subject on which a cluster tells that another server leads a stream or a
// consumer. The name of the stream is its sixth token.
const leaderElected = "$JS.EVENT.ADVISORY.*.LEADER_ELECTED.>"

// elected is called when another server of the cluster leads a stream or a consumer.
func (q *queue) elected(msg *nats.Msg) {
	switch strings.Split(msg.Subject, ".")[5] {
	case q.names.jobs, q.names.dead, q.names.returns, q.names.slots:
		q.link.newLeader()
	}
}
