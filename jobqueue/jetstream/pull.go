package jetstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway/jobqueue"
)

// pull asks a consumer for messages, one request at a time. Unlike the client library's,
// it can take a request back without losing what is on its way: a message that is
// delivered to nobody comes again only after AckWait, and counts as an attempt.
type pull struct {
	q       *queue
	subject string
	replies *nats.Subscription
	owed    int       // messages that the engine may still send for the latest request
	expires time.Time // when the engine ends the latest request
}

func (q *queue) pull(stream, consumer string) *pull {
	return &pull{q: q, subject: "$JS.API.CONSUMER.MSG.NEXT." + stream + "." + consumer}
}

// now takes at most most messages that are there, and calls take for each.
func (p *pull) now(most int, take func(*nats.Msg)) error {
	ctx, cancel := p.q.asking(p.q.closing)
	defer cancel()
	return p.ask(ctx, fmt.Sprintf(`{"batch":%d,"no_wait":true}`, most), most, 0, take)
}

// wait takes the next message if it comes before sentryWait is over and ctx ends.
func (p *pull) wait(ctx context.Context, take func(*nats.Msg)) error {
	ctx, cancel := context.WithTimeout(ctx, sentryWait+p.q.cfg.Wait)
	defer cancel()
	ctx, leave := p.q.link.during(ctx)
	defer leave()
	return p.ask(ctx, fmt.Sprintf(`{"batch":1,"expires":%d}`, sentryWait), 1, sentryWait, take)
}

func (p *pull) ask(ctx context.Context, request string, most int, expires time.Duration, take func(*nats.Msg)) (err error) {
	q := p.q
	if p.replies == nil {
		if p.replies, err = q.nc.SubscribeSync(q.nc.NewInbox()); err != nil {
			return q.unavailable(ctx, err)
		}
	}
	if err := q.nc.PublishRequest(p.subject, p.replies.Subject, []byte(request)); err != nil {
		return q.unavailable(ctx, err)
	}
	p.owed, p.expires = most, time.Now().Add(expires)
	defer time.AfterFunc(sentryWait+lookAgain, q.mendSoon).Stop() // a consumer that was deleted answers nothing
	if err = p.answers(ctx, take); err == nil {
		return nil
	}
	p.end(take)
	if errors.Is(err, jobqueue.ErrUnavailable) || missing(err) {
		q.mendSoon()
	}
	return q.unavailable(ctx, err)
}

// answers takes what the engine sends for the latest request, until the engine owes nothing.
func (p *pull) answers(ctx context.Context, take func(*nats.Msg)) error {
	for p.owed > 0 {
		msg, err := p.replies.NextMsgWithContext(ctx)
		if err != nil {
			return err
		}
		switch status := msg.Header.Get("Status"); status {
		case "":
			p.owed--
			take(msg)
		case "100": // a sign of life
		case "404", "408": // no more
			p.owed = 0
		default: // there is no such consumer, or the engine has no leader for it
			p.owed = 0
			return fmt.Errorf("%w: %s %s", jobqueue.ErrUnavailable, status, msg.Header.Get("Description"))
		}
	}
	return nil
}

// end takes the request back. What the engine had sent before it heard of that is taken.
//
// A server that stands alone has heard of it when it answers the Drain. In a cluster another
// server may lead the consumer, and send a message after that: there the request is waited for
// until it has ended by itself.
func (p *pull) end(take func(*nats.Msg)) {
	if p.replies == nil {
		return
	}
	if p.owed > 0 && p.q.clustered() {
		ctx, cancel := context.WithDeadline(context.Background(), p.expires.Add(p.q.cfg.Wait))
		ctx, leave := p.q.link.during(ctx)
		_ = p.answers(ctx, take)
		leave()
		cancel()
	}
	replies := p.replies
	p.replies, p.owed = nil, 0
	if err := replies.Drain(); err != nil {
		_ = replies.Unsubscribe()
		return
	}
	for patient := time.Now().Add(p.q.cfg.Wait); ; {
		msg, err := replies.NextMsg(time.Second)
		switch {
		case err == nil && msg.Header.Get("Status") == "":
			take(msg)
		case err == nil:
		case errors.Is(err, nats.ErrTimeout) && replies.IsValid() && p.q.nc.IsConnected() && time.Now().Before(patient):
			// the server is slow to answer the Drain
		default:
			_ = replies.Unsubscribe()
			return
		}
	}
}

// clustered reports whether the server is one of several that share the queue.
func (q *queue) clustered() bool {
	leads := q.jobs.CachedInfo().Cluster // of a server that stands alone it has no name
	return q.nc.ConnectedClusterName() != "" || leads != nil && leads.Name != ""
}
