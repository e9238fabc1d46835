package jetstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway/jobqueue"
)

// pull asks a consumer for messages, one request at a time. Unlike the client library, pull can
// take a request back without losing messages in transit. A message delivered to no worker counts as
// an attempt. The message comes again at once if the engine notices that nobody listens, and
// otherwise after AckWait.
type pull struct {
	q       *queue
	subject string
	late    func(*nats.Msg) // gives back a message that nobody waits for
	replies *nats.Subscription
	owed    int       // messages that the engine may still send for the latest request
	expires time.Time // when the engine ends the latest request
}

func (q *queue) pull(stream, consumer string) *pull {
	p := &pull{q: q, subject: "$JS.API.CONSUMER.MSG.NEXT." + stream + "." + consumer, late: q.giveBack}
	if stream == q.names.slots {
		p.late = handBack
	}
	return p
}

// now takes at most most messages that are ready, and calls take for each.
func (p *pull) now(most int, take func(*nats.Msg)) error {
	most = min(most, orElse(p.q.pulls, most))
	ctx, cancel := p.q.asking(p.q.closing)
	defer cancel()
	return p.ask(ctx, fmt.Sprintf(`{"batch":%d,"no_wait":true}`, most), most, 0, take)
}

// wait takes the next message if it comes before ctx ends and before sentryWait is over.
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
		_ = p.replies.SetPendingLimits(-1, -1) // each request bounds its answers; the default drops jobs beyond 64 MB
	}
	if err := q.nc.PublishRequest(p.subject, p.replies.Subject, []byte(request)); err != nil {
		return q.unavailable(ctx, err)
	}
	p.owed, p.expires = most, time.Now().Add(expires)
	defer time.AfterFunc(sentryWait+lookAgain, q.mendSoon).Stop() // a deleted consumer never answers
	q.link.silence.begin()
	err = p.answers(ctx, take)
	how := endOf(q.closing, ctx, err)
	q.link.silence.end(how)
	if err == nil {
		return nil
	}
	if how == withoutAnswer && q.clustered() {
		q.link.doubt() // the server that has the consumer may have been killed: without replicas there is no new leader
	}
	if errors.Is(context.Cause(ctx), errLeader) {
		p.leave()
	} else {
		p.end(take)
	}
	if errors.Is(err, jobqueue.ErrUnavailable) || missing(err) {
		q.mendSoon()
	}
	return q.unavailable(ctx, err)
}

// answers takes the engine's messages for the latest request, until the engine owes no message.
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
		case "100": // a sign of life from the engine
		case "404", "408": // no more messages
			p.owed = 0
		default: // there is no such consumer, or the engine has no leader for it
			p.owed = 0
			return fmt.Errorf("%w: %s %s", jobqueue.ErrUnavailable, status, msg.Header.Get("Description"))
		}
	}
	return nil
}

// leave takes the request back in the background, because the former leader may not answer for as
// long as end waits. What it sent goes to whoever asks next.
func (p *pull) leave() {
	former := *p
	p.replies, p.owed = nil, 0
	p.q.stragglers.Go(func() { former.end(p.late) })
}

// end takes the request back. It takes the messages that the engine sent before the request ended.
//
// A standalone server has processed the end of the request when it answers the Drain. In a cluster
// another server may lead the consumer and send a message afterwards. There end waits until the
// request has expired.
func (p *pull) end(take func(*nats.Msg)) {
	if p.replies == nil {
		return
	}
	if p.owed > 0 && p.q.clustered() {
		ctx, cancel := context.WithDeadline(context.Background(), p.expires.Add(min(p.q.cfg.Wait, defaultWait)))
		ctx, leave := p.q.link.connected(ctx)
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
	for until := time.Now().Add(p.q.cfg.Wait); ; {
		msg, err := replies.NextMsg(time.Second)
		switch {
		case err == nil && msg.Header.Get("Status") == "":
			take(msg)
		case err == nil:
		case errors.Is(err, nats.ErrTimeout) && replies.IsValid() && p.q.nc.IsConnected() && time.Now().Before(until):
			// the server is slow to answer the Drain
		default:
			_ = replies.Unsubscribe()
			return
		}
	}
}

// clustered reports whether several servers share the queue.
func (q *queue) clustered() bool {
	leads := q.jobs.CachedInfo().Cluster // the name is empty on a standalone server
	return q.nc.ConnectedClusterName() != "" || leads != nil && leads.Name != ""
}
