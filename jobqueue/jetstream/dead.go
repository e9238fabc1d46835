package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/spillway-go/spillway/jobqueue"
)

// bury makes a task a dead letter and then removes the task from the queue. The dead letter's
// subject has the id of the job's message. After a crash between the two steps, a worker that
// gets the job again finds that it is buried. The engine refuses a second burial.
//
// While the engine does not accept the dead letter, bury retries for as long as this process holds
// the task. A later run of the job would have another reason, or none.
func (w *worker) bury(t *task, reason string) {
	q := w.q
	ctx, cancel := context.WithTimeout(q.closing, q.ackWait)
	defer cancel()
	written, err := q.inter(ctx, t, reason)
	if err != nil {
		q.cfg.Logger.Warn("a dead letter cannot be written yet", "key", t.job.Key, "reason", reason, "error", err)
	}
	for err != nil && errors.Is(q.unavailable(q.closing, err), jobqueue.ErrUnavailable) && pause(ctx, retryPause) {
		written, err = q.inter(ctx, t, reason)
	}
	if err != nil {
		q.cfg.Logger.Error("a dead letter cannot be written, its job stays in the queue", "key", t.job.Key, "reason", reason, "error", err)
		if !w.kept.release(t.msg) {
			_ = t.msg.NakWithDelay(time.Second)
		}
		return
	}
	if written { // otherwise another run counts it
		q.counters.buried.Add(1)
		q.cfg.Logger.Warn("a job became a dead letter", "key", t.job.Key, "attempts", t.attempt, "reason", reason)
	}
	w.finishTask(t)
}

// inter writes the dead letter of a task, and reports whether this run has written it: another run
// of the job may have been faster.
func (q *queue) inter(ctx context.Context, t *task, reason string) (written bool, err error) {
	if t.letter == "" {
		t.letter = newKey()
	}
	msg, err := q.letterOf(t, reason, int(q.nc.MaxPayload()))
	if err != nil {
		return false, err
	}
	var ack *js.PubAck
	err = q.asked(ctx, func(ctx context.Context) (err error) {
		ack, err = q.js.PublishMsg(ctx, msg)
		return err
	})
	switch {
	case err == nil && !ack.Duplicate:
		return true, nil
	case err != nil && !wrongLast(err):
		return false, err
	}
	// The letter exists already, maybe by a try of this run that was not answered.
	var there *js.RawStreamMsg
	err = q.asked(ctx, func(ctx context.Context) (err error) {
		there, err = q.dead.GetLastMsgForSubject(ctx, msg.Subject)
		return err
	})
	if errors.Is(err, js.ErrMsgNotFound) {
		return false, nil // it was replayed or purged
	}
	if err != nil {
		return false, err
	}
	var e epitaph
	_ = json.Unmarshal([]byte(there.Header.Get(headerDead)), &e)
	return e.Run == t.letter, nil
}

// letterOf returns a task's dead letter. A letter of more than most bytes loses the end of its reason,
// the job's headers and the end of its payload, in this order, until it fits: the server's limit may
// be lower than it was, a message that is no job may have any size, and JSON makes six bytes of some
// bytes of a reason.
func (q *queue) letterOf(t *task, reason string, most int) (*nats.Msg, error) {
	msg := &nats.Msg{Subject: q.names.deadOf(t.id), Data: t.msg.Data, Header: nats.Header{
		headerMsgID: {t.id}, js.ExpectedLastSubjSeqHeader: {"0"},
	}}
	if t.invalid == nil {
		msg.Header[headerJob] = t.msg.Header[headerJob]
	}
	e, headers := epitaph{Reason: reason, Attempts: t.attempt, Run: t.letter}, t.invalid == nil && len(t.job.Header) > 0
	for {
		text, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		msg.Header[headerDead] = []string{string(text)}
		over := size(msg) - most
		if most == 0 {
			over = 0
		}
		inHeaders := size(msg) - len(msg.Data) - longestHeaders
		if over <= 0 && inHeaders <= 0 {
			return msg, nil
		}
		switch over := max(over, inHeaders); {
		case len(e.Reason) > shortReason:
			e.Reason = strings.ToValidUTF8(e.Reason[:max(len(e.Reason)-over, shortReason)], "")
		case headers:
			headers = false
			bare, err := encode(jobqueue.Job{Key: t.job.Key, Priority: t.job.Priority})
			if err != nil {
				return nil, err
			}
			msg.Header[headerJob] = bare.Header[headerJob]
		case inHeaders <= 0 && len(msg.Data) > 0:
			n := min(over+len(`,"cut":`)+20, len(msg.Data))
			msg.Data = msg.Data[:len(msg.Data)-n]
			e.Cut += n
		default:
			return msg, nil // the server says that it does not fit
		}
	}
}

// shortReason is the length in bytes to which a reason is cut for the sake of the job.
const shortReason = 200

// isDead reports whether the job's message is buried. If the engine does not answer, isDead returns
// false: at worst the job runs again.
func (q *queue) isDead(ctx context.Context, id string) bool {
	err := q.asked(ctx, func(ctx context.Context) error {
		_, err := q.dead.GetLastMsgForSubject(ctx, q.names.deadOf(id))
		return err
	})
	return err == nil
}

// Dead is described at jobqueue.Queue.
func (q *queue) Dead(ctx context.Context, limit int) ([]jobqueue.DeadJob, error) {
	var letters []jobqueue.DeadJob
	for next := uint64(1); len(letters) < limit; next++ {
		msg, err := q.letter(ctx, next, js.WithGetMsgSubject(q.names.deadOf("*")))
		if errors.Is(err, js.ErrMsgNotFound) {
			break
		}
		if err != nil {
			return nil, q.errorFor(ctx, err)
		}
		letters = append(letters, deadJob(msg))
		next = msg.Sequence
	}
	return letters, nil
}

// letter returns a dead letter.
func (q *queue) letter(ctx context.Context, id uint64, options ...js.GetMsgOpt) (msg *js.RawStreamMsg, err error) {
	err = q.asked(ctx, func(ctx context.Context) (err error) {
		msg, err = q.dead.GetMsg(ctx, id, options...)
		return err
	})
	return msg, err
}

func deadJob(msg *js.RawStreamMsg) jobqueue.DeadJob {
	var e epitaph
	if err := json.Unmarshal([]byte(msg.Header.Get(headerDead)), &e); err != nil {
		e.Reason = "unknown: this dead letter was not written by the queue"
	}
	if e.Cut > 0 {
		e.Reason = fmt.Sprintf("%s (%d bytes of the payload are missing: they did not fit in a message)", e.Reason, e.Cut)
	}
	job, err := decode(msg.Header, msg.Data)
	if err != nil {
		job = jobqueue.Job{Payload: msg.Data}
	}
	return jobqueue.DeadJob{ID: msg.Sequence, Job: job, Reason: e.Reason, Attempts: e.Attempts, Died: msg.Time}
}

// Replay is described at jobqueue.Queue. A dead letter that was not a job, because others put it
// into the stream, becomes a job.
func (q *queue) Replay(ctx context.Context, id uint64) error {
	if id == 0 { // IDs count from one, and the client library has another error for zero
		return fmt.Errorf("%w: 0", jobqueue.ErrNotFound)
	}
	msg, err := q.letter(ctx, id)
	if errors.Is(err, js.ErrMsgNotFound) {
		return fmt.Errorf("%w: %d", jobqueue.ErrNotFound, id)
	}
	if err != nil {
		return q.errorFor(ctx, err)
	}
	var was epitaph
	if _ = json.Unmarshal([]byte(msg.Header.Get(headerDead)), &was); was.Cut > 0 {
		return fmt.Errorf("jetstream: dead letter %d lacks %d bytes of its payload, because it did not fit in a message: enqueue the job anew", id, was.Cut)
	}
	job := deadJob(msg).Job
	job.Delay = 0
	created := job.Key == ""
	if created {
		job.Key = newKey()
	}
	again, err := encode(job)
	if err != nil {
		return err
	}
	// A crash before the deletion leaves the dead letter. If it is replayed again within the
	// deduplication window, the server finds the duplicate.
	if died, _, ok := markOf(q.markIn(msg.Subject)); ok && !created { // the dead job's key becomes the new job's key
		again.Header.Set(headerMsgID, idAgain(again.Header.Get(headerMsgID), died))
	} else {
		again.Header.Set(headerMsgID, fmt.Sprintf("replay %d-%d", id, msg.Time.UnixNano()))
	}
	again.Subject = q.names.ready(job.Priority)
	if err := q.commits.store(ctx, newEntry(again, time.Now().Add(q.cfg.Wait))); err != nil {
		return err
	}
	if err := q.forget(ctx, q.young(msg.Subject)); err != nil {
		return q.errorFor(ctx, err)
	}
	err = q.asked(ctx, func(ctx context.Context) error { return q.dead.DeleteMsg(ctx, id) })
	if errors.Is(err, js.ErrMsgNotFound) {
		return nil
	}
	return q.errorFor(ctx, err)
}

// markIn returns the job's id from the subject of its dead letter.
func (q *queue) markIn(subject string) string { return strings.TrimPrefix(subject, q.names.deadOf("")) }

// young returns the dead letters' jobs, by subject, whose keys the server may still know.
func (q *queue) young(subjects ...string) (jobs []span) {
	now := q.clock.now()
	since := now.Add(-q.remembered() - time.Minute)
	for _, subject := range subjects {
		if job, at, ok := markOf(q.markIn(subject)); ok && at.After(since) {
			jobs = append(jobs, span{job, job, now})
		}
	}
	return jobs
}

// Purge is described at jobqueue.Queue. The number includes the jobs that run in other processes:
// they end and are not retried.
func (q *queue) Purge(ctx context.Context) (int, error) { return q.purge(ctx, q.jobs, true) }

// PurgeDead is described at jobqueue.Queue.
func (q *queue) PurgeDead(ctx context.Context) (int, error) {
	return q.purge(ctx, q.dead, false, js.WithSubjectFilter(q.names.deadOf("*")))
}

// purge forgets the keys first: a crash in between leaves jobs that may be enqueued again, rather than
// keys of removed jobs. live means that the stream holds jobs that are not dead.
func (q *queue) purge(ctx context.Context, stream js.Stream, live bool, options ...js.StreamInfoOpt) (int, error) {
	var info *js.StreamInfo
	err := q.asked(ctx, func(ctx context.Context) (err error) {
		info, err = stream.Info(ctx, options...)
		return err
	})
	if err != nil {
		return 0, q.errorFor(ctx, err)
	}
	if info.State.Msgs == 0 {
		return 0, nil
	}
	removed := q.young(slices.Collect(maps.Keys(info.State.Subjects))...)
	if live {
		removed = []span{{info.State.FirstSeq, info.State.LastSeq, q.clock.now()}}
	}
	if err := q.forget(ctx, removed); err != nil {
		return 0, q.errorFor(ctx, err)
	}
	runs := 0
	if live {
		runs = int(q.counters.unsettled.Load())
	}
	var answer struct {
		Purged int          `json:"purged"`
		Error  *js.APIError `json:"error"`
	}
	err = q.asked(ctx, func(ctx context.Context) error {
		what := map[string]uint64{"seq": info.State.LastSeq + 1} // jobs stored meanwhile stay
		if err := q.request(ctx, "$JS.API.STREAM.PURGE."+info.Config.Name, what, &answer); err != nil {
			return err
		}
		if answer.Error != nil {
			return answer.Error
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("jetstream: purging: %w", q.errorFor(ctx, err))
	}
	return max(answer.Purged-runs, 0), nil
}

// request calls the server's API for requests that the client library does not offer.
func (q *queue) request(ctx context.Context, subject string, body, answer any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	reply, err := q.nc.RequestWithContext(ctx, subject, data)
	if err != nil {
		return err
	}
	return json.Unmarshal(reply.Data, answer)
}
