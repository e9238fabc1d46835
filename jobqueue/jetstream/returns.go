package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/spillway-go/spillway/jobqueue/internal/engine"
)

// returnsFor bounds how long the engine keeps the record of a delivery that was no attempt. The end
// of a job removes its record. A record can be left when a process dies between the two steps, or
// when jobs are purged. Such a record does no harm: marks of jobs are not reused.
const returnsFor = 365 * 24 * time.Hour

func (q *queue) returnsConfig() js.StreamConfig {
	return js.StreamConfig{
		Name: q.names.returns, Subjects: []string{q.names.returnsOf("*")}, Storage: js.FileStorage, MaxMsgsPerSubject: 1,
		MaxAge: returnsFor, AllowDirect: true, Replicas: max(q.cfg.Replicas, 1),
	}
}

// history holds the facts about a job that the engine does not count.
type history struct {
	none     int  // deliveries that were no attempts
	answered bool // the attempt before the last one has ended
	version  uint64
}

// past returns the history of a job.
func (q *queue) past(ctx context.Context, id string) (h history, err error) {
	var msg *js.RawStreamMsg
	err = q.asked(ctx, func(ctx context.Context) (err error) {
		msg, err = q.returns.GetLastMsgForSubject(ctx, q.names.returnsOf(id))
		return err
	})
	if errors.Is(err, js.ErrMsgNotFound) {
		return h, nil
	}
	if err != nil {
		return h, err
	}
	none, rest, _ := strings.Cut(string(msg.Data), " ")
	h.answered, h.version = rest == answered, msg.Sequence
	if h.none, err = strconv.Atoi(none); err != nil || h.none < 0 { // somebody else has written it
		h.none = 0
	}
	return h, nil
}

// forgetPast makes the engine forget the history of an ended job. It does not wait for an answer.
func (q *queue) forgetPast(id string) {
	what, err := json.Marshal(map[string]string{"filter": q.names.returnsOf(id)})
	if err == nil {
		_ = q.nc.PublishRequest("$JS.API.STREAM.PURGE."+q.names.returns, q.nc.NewInbox(), what)
	}
}

const answered = "answered"

func (h history) text() string {
	if h.answered {
		return strconv.Itoa(h.none) + " " + answered
	}
	return strconv.Itoa(h.none)
}

// giveBack makes the engine hand a job to the next worker that asks. First it records that this
// delivery was no attempt. If the engine does not answer, the delivery counts as an attempt.
func (q *queue) giveBack(msg *nats.Msg) {
	defer handBack(msg)
	q.noAttempt(msg)
}

// handBack lets the engine deliver a message again. Because of the delay the engine stores the
// hand-back, so that a restarted engine need not wait for AckWait. If the hand-back is lost, the
// engine must wait.
func handBack(msg *nats.Msg) { _ = msg.NakWithDelay(time.Millisecond) }

// noAttempt records that a delivery was no attempt.
func (q *queue) noAttempt(msg *nats.Msg) {
	meta, err := msg.Metadata()
	if err != nil {
		return
	}
	if job, err := decode(msg.Header, msg.Data); err == nil && job.Delay > 0 && meta.NumDelivered == 1 {
		return // the first delivery of a delayed job never counts
	}
	q.note(meta, func(h *history) { h.none++ })
}

// attempted records that the attempt before the last permitted attempt has ended, so that the job
// is no suspect at its last attempt.
func (q *queue) attempted(t *task) {
	if t.attempt != engine.Attempts(q.cfg.Policy)-1 {
		return
	}
	if meta, err := t.msg.Metadata(); err == nil {
		q.note(meta, func(h *history) { h.answered = true })
	}
}

// note changes the history of a job, unless another process has changed it meanwhile. In that case
// the other process has the job.
func (q *queue) note(meta *nats.MsgMetadata, change func(*history)) {
	ctx := context.Background()
	var h history
	if meta.NumDelivered > 1 {
		var err error
		if h, err = q.past(ctx, idOf(meta)); err != nil {
			return
		}
	}
	change(&h)
	err := q.asked(ctx, func(ctx context.Context) error {
		_, err := q.js.Publish(ctx, q.names.returnsOf(idOf(meta)), []byte(h.text()), js.WithExpectLastSequencePerSubject(h.version))
		return err
	})
	if err != nil {
		q.cfg.Logger.Warn("how a run of a job ended cannot be put on record: it may count as an attempt", "error", err)
	}
}
