package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/internal/engine"
	"github.com/spillway-go/spillway/limiter"
)

// task is a message from the engine that this process holds.
type task struct {
	msg        *nats.Msg
	job        jobqueue.Job
	invalid    error  // why the message is not a job
	id         string // see idOf
	deliveries int    // deliveries of the message, including this one
	attempt    int
	counted    bool // attempt has been corrected
	enqueued   time.Time
	taken      time.Time     // when the message came to this process
	after      time.Duration // delay until the next try; set when the task is deferred
	limited    bool          // deferred by the limiter of this process
	held       time.Time     // when the task was first deferred
	away       bool          // deferred, and back at the engine
	answered   bool          // the end of the previous attempt is known
	recorded   bool          // the engine has a history of the job
	unsure     bool          // the job may be a suspect
	suspect    bool
	late       bool   // the run ended after the engine had given the job to another worker
	asked      string // the server that was asked to end the job, and did not answer
	removed    bool   // this run has ended the job

	extend sync.Mutex // held while a report of progress extends the run
	letter string     // names this run in its dead letter
}

// idOf is a permanent name of a job's message. The sequence number alone is not unique: a stream
// that was deleted and recreated counts from one.
func idOf(meta *nats.MsgMetadata) string {
	return fmt.Sprintf("%d-%d", meta.Sequence.Stream, meta.Timestamp.UnixNano())
}

// receive returns the task in msg, or nil if the job is not due yet. The engine delivers the
// message again later.
func (q *queue) receive(msg *nats.Msg, taken time.Time) *task {
	meta, err := msg.Metadata()
	if err != nil {
		q.cfg.Logger.Error("a message without metadata is left to the engine", "error", err)
		return nil
	}
	t := &task{msg: msg, id: idOf(meta), deliveries: int(meta.NumDelivered), enqueued: meta.Timestamp, taken: taken}
	t.attempt = t.deliveries
	if t.job, t.invalid = decode(msg.Header, msg.Data); t.invalid != nil || t.job.Delay == 0 {
		return t
	}
	// The first delivery of a delayed job only sets the engine's timer, even if the job is overdue.
	// All later deliveries are then attempts.
	t.attempt--
	ctx, cancel := q.asking(q.closing)
	defer cancel()
	q.clock.refresh(ctx, q.jobs, lookEach)
	due := meta.Timestamp.Add(t.job.Delay).Sub(q.clock.now())
	if due > t.job.Delay { // the server's clock was set after the last query: the server's timers are right
		due = 0
		if t.attempt == 0 {
			due = t.job.Delay
		}
	}
	if t.attempt == 0 || due > 0 {
		if t.attempt > 0 { // the engine is early, or its answer about the time was slow
			q.noAttempt(msg)
		}
		_ = msg.NakWithDelay(max(due, time.Millisecond))
		return nil
	}
	t.job.Delay = 0
	return t
}

// counted subtracts deliveries that were no attempts from the number of attempts. If the engine
// does not answer, the job gets at least one more run.
func (q *queue) counted(ctx context.Context, t *task) {
	if t.deliveries == 1 || t.counted {
		return
	}
	t.counted = true
	h, err := q.past(ctx, t.id)
	if err != nil {
		t.attempt = min(t.attempt, engine.Attempts(q.cfg.Policy))
	}
	t.attempt = max(t.attempt-h.none, 1)
	t.answered, t.recorded = h.answered, h.version > 0
}

// run runs a task and settles the result.
func (w *worker) run(t *task) {
	q := w.q
	q.counted(w.ctx, t)
	if w.settled(t) {
		t.sure(&q.suspects)
		return
	}
	over, ok := w.apart(t)
	if !ok {
		return
	}
	defer over()
	var permit limiter.Permit
	if q.cfg.Limiter != nil {
		var err error
		ctx := spillway.WithPriority(w.ctx, t.job.Priority)
		if permit, err = q.cfg.Limiter.AcquireWith(ctx, limiter.Request{}); err != nil {
			w.refused(t, err)
			return
		}
		defer permit.Release()
	}
	if time.Since(t.taken) > sureFor && q.hasEnded(t) {
		w.kept.drop(t.msg)
		return
	}
	// From here on only the handler's reports of progress keep the job.
	if w.kept.release(t.msg) { // lost while it waited for the limiter
		q.counters.lost.Add(1)
		return
	}
	_ = t.msg.InProgress()
	ctx, lose := context.WithCancelCause(w.ctx)
	defer lose(nil)
	expiry := time.AfterFunc(q.runLimit(), func() { lose(jobqueue.ErrLost); over() })
	defer expiry.Stop()
	d := &jobqueue.Delivery{Job: t.job, Attempt: t.attempt, Enqueued: t.enqueued, Progress: func(caller context.Context) error {
		return q.progress(caller, ctx, t, expiry)
	}}
	q.counters.running.Add(1)
	q.counters.unsettled.Add(1)
	engine.Run(ctx, w.handler, d, func(err error) {
		q.counters.running.Add(-1)
		permit.Done(err)
		lost := !expiry.Stop() && errors.Is(context.Cause(ctx), jobqueue.ErrLost)
		w.settle(t, lost, err)
		q.counters.unsettled.Add(-1)
	})
}

// refused settles a task that the limiter of this process refused.
func (w *worker) refused(t *task, err error) {
	t.limited = true
	w.settle(t, false, err)
}

// runLimit is how long a handler may run without progress before its job counts as lost. It is
// slightly below the engine's AckWait, so that two handlers never hold a job at once.
func (q *queue) runLimit() time.Duration { return q.ackWait - q.ackWait/20 }

func (q *queue) progress(caller, job context.Context, t *task, expiry *time.Timer) error {
	if err := caller.Err(); err != nil {
		return err
	}
	if job.Err() != nil {
		return context.Cause(job)
	}
	ctx, cancel := q.asking(caller)
	defer cancel()
	asked := time.Now()
	if _, err := q.nc.RequestWithContext(ctx, t.msg.Reply, []byte("+WPI")); err != nil {
		if caller.Err() != nil {
			return caller.Err()
		}
		return q.unavailable(ctx, err)
	}
	t.extend.Lock() // a handler may report from several goroutines
	defer t.extend.Unlock()
	if !expiry.Stop() {
		return jobqueue.ErrLost
	}
	expiry.Reset(q.runLimit() - time.Since(asked))
	return nil
}

// settled reports whether the task needs no run, and ends such a task. A task needs no run if it is
// not a job, if a crash left its dead letter, or if too many workers died in its attempts.
func (w *worker) settled(t *task) bool {
	q := w.q
	switch {
	case t.invalid != nil:
		w.bury(t, t.invalid.Error())
		return true
	case q.ending.has(t.id): // done here, and the engine that was told so was killed
		w.finishTask(t)
		return true
	case (t.deliveries > 1 || q.renewedSince(t.enqueued)) && q.isDead(w.ctx, t.id):
		w.finishTask(t)
		return true
	case t.attempt > engine.Attempts(q.cfg.Policy):
		t.attempt-- // this delivery is not an attempt
		w.bury(t, "delivered "+strconv.Itoa(t.attempt)+" times and never finished: its workers died or took too long")
		return true
	}
	return false
}

// settle ends a run according to its error.
func (w *worker) settle(t *task, lost bool, err error) {
	q := w.q
	settled := engine.Settle(q.cfg.Policy, err, t.attempt)
	if w.ctx.Err() != nil {
		settled = engine.SettleEnded(q.cfg.Policy, err)
	}
	t.late = lost
	switch {
	case q.closing.Err() != nil && !lost: // a run that ends now does not count
		q.counters.lost.Add(1)
		w.giveBack(t)
	case settled.Fate == engine.Finish:
		w.finished(t)
	case lost:
		q.counters.lost.Add(1) // another worker has the job
		w.kept.drop(t.msg)
		q.attempted(t)
	case settled.Fate == engine.Defer && settled.After == 0: // Work has ended
		w.giveBack(t)
	case settled.Fate == engine.Bury:
		w.kept.add(t.msg)
		w.bury(t, settled.Reason)
	case settled.Fate == engine.Defer:
		q.counters.deferred.Add(1)
		w.defers(t, settled)
	default:
		q.counters.retried.Add(1)
		w.kept.drop(t.msg)
		q.attempted(t)
		_ = t.msg.NakWithDelay(max(settled.After, time.Millisecond))
	}
}

// defers lets a task wait, in this process at first.
func (w *worker) defers(t *task, settled engine.Settlement) {
	after := settled.After
	if t.limited {
		after = min(after, limiterAgain)
	}
	if t.held.IsZero() {
		t.held = time.Now()
	}
	crowded := !t.limited && int(w.waiting.Load()) >= deferredEach*w.q.inFlight
	if crowded {
		after = max(after, heldFor) // spares the engine
	}
	if crowded || t.suspect || settled.Away || after > heldFor || time.Since(t.held) >= heldFor {
		t.away = true
		w.putOff(t, after)
		return
	}
	w.kept.add(t.msg)
	t.after = after
}

// finished ends a task whose handler succeeded. If several runs do one job, only the run whose
// answer ends the job counts the job as done. A late run also counts as lost.
func (w *worker) finished(t *task) {
	q := w.q
	if t.late {
		w.kept.drop(t.msg)
		q.counters.lost.Add(1)
	} else {
		w.kept.add(t.msg)
	}
	if w.finishTask(t) {
		q.counters.done.Add(1)
	}
}

// sureFor is how long a job that waits in this process counts as being in the queue. Later the
// engine is asked whether somebody has purged the job meanwhile.
const sureFor = 100 * time.Millisecond

// hasEnded reports whether another run has ended the job, or Purge has removed it. It is false if
// the engine does not answer.
func (q *queue) hasEnded(t *task) bool {
	meta, err := t.msg.Metadata()
	if err != nil {
		return false
	}
	ctx, cancel := q.asking(q.closing)
	defer cancel()
	msg, err := q.jobs.GetMsg(ctx, meta.Sequence.Stream)
	return errors.Is(err, js.ErrMsgNotFound) || err == nil && !msg.Time.Equal(meta.Timestamp)
}

// giveBack makes the engine hand the task to the next worker that asks. The delivery to this
// process does not count as an attempt.
func (w *worker) giveBack(t *task) {
	if w.kept.release(t.msg) {
		w.q.counters.lost.Add(1)
		return
	}
	w.q.giveBack(t.msg)
}

// finishTask removes the task from the queue, and reports whether this run has ended the job. While
// the engine is away, finishTask retries for as long as this process holds the task.
func (w *worker) finishTask(t *task) bool {
	defer w.kept.drop(t.msg)
	defer w.q.ending.forget(t)
	ctx, cancel := context.WithTimeout(w.q.closing, w.q.ackWait)
	defer cancel()
	for {
		try, done := w.q.asking(ctx)
		err := w.q.end(try, t)
		done()
		if err == nil {
			if t.recorded {
				w.q.forgetPast(t.id)
			}
			if !t.removed && t.asked != "" && !t.late { // late runs are counted already
				w.q.counters.lost.Add(1)
			}
			return t.removed
		}
		if !pause(ctx, retryPause) {
			if !t.late { // late runs are counted already
				w.q.counters.lost.Add(1)
			}
			return false
		}
	}
}

// end tries to end a job. The engine answers every acknowledgement alike. If there may have been
// another run, the job's message is removed first: the engine tells who has removed it. If the
// message is gone and a former try was not answered, that try has removed it, unless the server was
// started anew: then another run may have been faster.
func (q *queue) end(ctx context.Context, t *task) error {
	twice := t.late || t.deliveries > 1 || q.renewedSince(t.enqueued)
	server := q.nc.ConnectedServerId()
	if twice && !t.removed {
		was, err := q.remove(ctx, t)
		if err != nil {
			q.ending.add(t, server)
			return err
		}
		t.removed = was || t.asked != "" && t.asked == server
	}
	if _, err := q.nc.RequestWithContext(ctx, t.msg.Reply, []byte("+ACK")); err != nil {
		q.ending.add(t, server)
		return err
	}
	t.removed = t.removed || !twice
	return nil
}

// renewedSince reports whether the connection was lost, or parts of the queue were, or another
// server leads a part, after the engine's time at. A killed engine may have forgotten how often it delivered the jobs of that time.
func (q *queue) renewedSince(at time.Time) bool {
	past, ok := q.link.age()
	return ok && at.Before(q.clock.now().Add(lookEach-past))
}

// remove deletes a job's message, and reports whether the message was there.
func (q *queue) remove(ctx context.Context, t *task) (was bool, err error) {
	meta, err := t.msg.Metadata()
	if err != nil {
		return false, err
	}
	var answer struct {
		Success bool         `json:"success"`
		Error   *js.APIError `json:"error"`
	}
	what := map[string]any{"seq": meta.Sequence.Stream, "no_erase": true}
	if err := q.request(ctx, "$JS.API.STREAM.MSG.DELETE."+q.names.jobs, what, &answer); err != nil || answer.Success {
		return answer.Success, err
	}
	if answer.Error != nil && !q.hasEnded(t) {
		return false, answer.Error
	}
	return false, nil
}

// endings are the jobs that are done in this process, and whose end the engine has not confirmed.
type endings struct {
	mu  sync.Mutex
	ids map[string]*task
}

// add records that server, if there is one, was asked to end a job.
func (e *endings) add(t *task, server string) {
	if server == "" || t.asked != "" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	t.asked = server
	if e.ids == nil {
		e.ids = map[string]*task{}
	}
	if e.ids[t.id] == nil {
		e.ids[t.id] = t
	}
}

func (e *endings) has(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ids[id] != nil
}

func (e *endings) forget(t *task) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ids[t.id] == t {
		delete(e.ids, t.id)
	}
}
