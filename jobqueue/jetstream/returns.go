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
)

// returnsFor bounds how long it is known that a delivery was no attempt. The end of a job takes
// away what is known of it. What is left where a process dies between the two, or jobs are purged,
// does no harm: marks of jobs are not used again.
const returnsFor = 365 * 24 * time.Hour

func (q *queue) returnsConfig() js.StreamConfig {
	return js.StreamConfig{
		Name: q.names.returns, Subjects: []string{q.names.returnsOf("*")}, Storage: js.FileStorage, MaxMsgsPerSubject: 1,
		MaxAge: returnsFor, AllowDirect: true, Replicas: max(q.cfg.Replicas, 1), Duplicates: defaultDedupe,
	}
}

// history is what the engine does not count of a job.
type history struct {
	none     int  // deliveries that were no attempts
	answered bool // the attempt before the last one has ended
	version  uint64
}

// past is the history of a job.
func (q *queue) past(ctx context.Context, mark string) (h history, err error) {
	var msg *js.RawStreamMsg
	err = q.asked(ctx, func(ctx context.Context) (err error) {
		msg, err = q.returns.GetLastMsgForSubject(ctx, q.names.returnsOf(mark))
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
	h.none, err = strconv.Atoi(none)
	return h, err
}

// forgetPast has the engine forget the history of a job that has ended. Nobody waits for that.
func (q *queue) forgetPast(mark string) {
	what, err := json.Marshal(map[string]string{"filter": q.names.returnsOf(mark)})
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
	q.note(meta, func(h *history) { h.none++ })
}

// attempted puts on record that the attempt before the last one has ended, so that the last is
// no suspect.
func (q *queue) attempted(t *task) {
	if t.attempt != q.cfg.Attempts()-1 {
		return
	}
	if meta, err := t.msg.Metadata(); err == nil {
		q.note(meta, func(h *history) { h.answered = true })
	}
}

// note changes the history of a job, unless another process has done so meanwhile: then the
// job is that one's.
func (q *queue) note(meta *nats.MsgMetadata, change func(*history)) {
	ctx := context.Background()
	var h history
	if meta.NumDelivered > 1 {
		var err error
		if h, err = q.past(ctx, mark(meta)); err != nil {
			return
		}
	}
	change(&h)
	err := q.asked(ctx, func(ctx context.Context) error {
		_, err := q.js.Publish(ctx, q.names.returnsOf(mark(meta)), []byte(h.text()), js.WithExpectLastSequencePerSubject(h.version))
		return err
	})
	if err != nil {
		q.cfg.Logger.Warn("how a run of a job ended cannot be put on record: it may count as an attempt", "error", err)
	}
}
