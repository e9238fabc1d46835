package jetstream

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
)

// returnsFor bounds how long it is known that a delivery was no attempt. Marks of jobs
// are not used again, so what is left of jobs that have ended does no harm.
const returnsFor = 7 * 24 * time.Hour

func (q *queue) prepareReturns(ctx context.Context) (err error) {
	q.returns, err = q.ensure(ctx, js.StreamConfig{
		Name: q.names.returns, Subjects: []string{q.names.returnsOf("*")}, Storage: js.FileStorage, MaxMsgsPerSubject: 1,
		MaxAge: returnsFor, AllowDirect: true, Replicas: max(q.cfg.Replicas, 1), Duplicates: defaultDedupe,
	}, func(c *js.StreamConfig) { c.Replicas = orElse(q.cfg.Replicas, c.Replicas) })
	return err
}

// returned is how many deliveries of a job were no attempts.
func (q *queue) returned(ctx context.Context, mark string) (int, error) {
	ctx, cancel := q.asking(ctx)
	defer cancel()
	msg, err := q.returns.GetLastMsgForSubject(ctx, q.names.returnsOf(mark))
	if errors.Is(err, js.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(msg.Data))
}

// giveBack has the engine hand a job to whoever asks next. First it puts on record that
// this delivery was no attempt; when the engine does not answer it counts as one.
func (q *queue) giveBack(msg *nats.Msg) {
	defer handBack(msg)
	q.noAttempt(msg)
}

// handBack lets the engine deliver a message again. With a delay the engine writes that
// down, so that an engine that starts again need not wait for AckWait. It has to if this
// is lost.
func handBack(msg *nats.Msg) { _ = msg.NakWithDelay(time.Millisecond) }

// noAttempt puts on record that a delivery was none.
func (q *queue) noAttempt(msg *nats.Msg) {
	meta, err := msg.Metadata()
	if err != nil {
		return
	}
	if job, err := decode(msg.Header, msg.Data); err == nil && job.Delay > 0 && meta.NumDelivered == 1 {
		return // the first delivery of a delayed job never counts
	}
	ctx, cancel := q.asking(context.Background())
	defer cancel()
	n := 0
	if meta.NumDelivered > 1 {
		if n, err = q.returned(ctx, mark(meta)); err != nil {
			return
		}
	}
	_, err = q.js.Publish(ctx, q.names.returnsOf(mark(meta)), []byte(strconv.Itoa(n+1)))
	if err != nil {
		q.cfg.Logger.Warn("a job that was handed back counts as an attempt", "error", err)
	}
}
