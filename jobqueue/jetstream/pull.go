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
}

func (q *queue) pull(stream, consumer string) *pull {
	return &pull{q: q, subject: "$JS.API.CONSUMER.MSG.NEXT." + stream + "." + consumer}
}

// now takes at most most messages that are there, and calls take for each.
func (p *pull) now(most int, take func(*nats.Msg)) error {
	ctx, cancel := p.q.asking(p.q.closing)
	defer cancel()
	return p.ask(ctx, fmt.Sprintf(`{"batch":%d,"no_wait":true}`, most), most, take)
}

// wait takes the next message if it comes before sentryWait is over and ctx ends.
func (p *pull) wait(ctx context.Context, take func(*nats.Msg)) error {
	ctx, cancel := context.WithTimeout(ctx, sentryWait+p.q.cfg.Wait)
	defer cancel()
	ctx, leave := p.q.link.during(ctx)
	defer leave()
	return p.ask(ctx, fmt.Sprintf(`{"batch":1,"expires":%d}`, sentryWait), 1, take)
}

func (p *pull) ask(ctx context.Context, request string, most int, take func(*nats.Msg)) (err error) {
	q := p.q
	if p.replies == nil {
		if p.replies, err = q.nc.SubscribeSync(q.nc.NewInbox()); err != nil {
			return q.unavailable(ctx, err)
		}
	}
	if err := q.nc.PublishRequest(p.subject, p.replies.Subject, []byte(request)); err != nil {
		return q.unavailable(ctx, err)
	}
	defer time.AfterFunc(sentryWait+lookAgain, q.mendSoon).Stop() // a consumer that was deleted answers nothing
	for n := 0; n < most; {
		msg, err := p.replies.NextMsgWithContext(ctx)
		if err != nil {
			p.end(take)
			if missing(err) {
				q.mendSoon()
			}
			return q.unavailable(ctx, err)
		}
		switch status := msg.Header.Get("Status"); {
		case status == "":
			take(msg)
			n++
		case status == "100": // a sign of life
		case status == "404" || status == "408":
			return nil // no more
		default: // there is no such consumer, or the engine has no leader for it
			p.end(take)
			q.mendSoon()
			return fmt.Errorf("%w: %s %s", jobqueue.ErrUnavailable, status, msg.Header.Get("Description"))
		}
	}
	return nil
}

// end takes the request back. What the engine had sent before it heard of that is taken.
func (p *pull) end(take func(*nats.Msg)) {
	replies := p.replies
	if p.replies = nil; replies == nil {
		return
	}
	if err := replies.Drain(); err != nil {
		_ = replies.Unsubscribe()
		return
	}
	for {
		msg, err := replies.NextMsg(time.Second)
		if errors.Is(err, nats.ErrTimeout) && replies.IsValid() && !p.q.nc.IsConnected() {
			_ = replies.Unsubscribe()
		}
		if err != nil {
			return
		}
		if msg.Header.Get("Status") == "" {
			take(msg)
		}
	}
}
