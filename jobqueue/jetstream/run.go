package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/limiter"
)

// task is a message from the engine, in the hands of this process.
type task struct {
	msg        *nats.Msg
	job        jobqueue.Job
	invalid    error  // it is not a job
	mark       string // see mark
	deliveries int    // of the message, this one included
	attempt    int
	counted    bool // attempt has been corrected
	enqueued   time.Time
	after      time.Duration // set when the task is deferred
	limited    bool          // by the limiter of this process
	answered   bool          // how the attempt before ended is known
	recorded   bool          // the engine has a history of the job
	unsure     bool          // may be a suspect
	suspect    bool
	late       bool // its run ended when the engine had given it to others
}

// mark names a job's message for good. Its number alone would not: a stream that was deleted
// and made again counts from one.
func mark(meta *nats.MsgMetadata) string {
	return fmt.Sprintf("%d-%d", meta.Sequence.Stream, meta.Timestamp.UnixNano())
}

// receive returns the task in msg, or nil when its time has not come: then the engine
// delivers it again.
func (q *queue) receive(msg *nats.Msg) *task {
	meta, err := msg.Metadata()
	if err != nil {
		q.cfg.Logger.Error("a message without metadata is left to the engine", "error", err)
		return nil
	}
	t := &task{msg: msg, mark: mark(meta), deliveries: int(meta.NumDelivered), enqueued: meta.Timestamp}
	t.attempt = t.deliveries
	if t.job, t.invalid = decode(msg.Header, msg.Data); t.invalid != nil || t.job.Delay == 0 {
		return t
	}
	// The first delivery of a delayed job only sets the engine's timer, also when it is
	// late: so that what follows are the attempts.
	t.attempt--
	ctx, cancel := q.asking(q.closing)
	defer cancel()
	q.clock.look(ctx, q.jobs, lookEach)
	due := meta.Timestamp.Add(t.job.Delay).Sub(q.clock.now())
	if due > t.job.Delay { // the server's clock was set since it was asked: its timers are right
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

// counted corrects the number of attempts by the deliveries that were none. When the
// engine does not say how many, the job has at least one more run.
func (q *queue) counted(ctx context.Context, t *task) {
	if t.deliveries == 1 || t.counted {
		return
	}
	t.counted = true
	h, err := q.past(ctx, t.mark)
	if err != nil {
		t.attempt = min(t.attempt, q.cfg.Attempts())
	}
	t.attempt = max(t.attempt-h.none, 1)
	t.answered, t.recorded = h.answered, h.version > 0
}

// run does a task, and settles what becomes of it.
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
	// From here on the job lives by its own reports of progress.
	w.kept.drop(t.msg)
	_ = t.msg.InProgress()
	ctx, lose := context.WithCancelCause(w.ctx)
	defer lose(nil)
	expiry := time.AfterFunc(q.patience(), func() { lose(jobqueue.ErrLost) })
	defer expiry.Stop()
	d := jobqueue.NewDelivery(t.job, t.attempt, t.enqueued, func(caller context.Context) error {
		return q.progress(caller, ctx, t, expiry)
	})
	q.counters.running.Add(1)
	jobqueue.Run(ctx, w.handler, d, func(err error) {
		q.counters.running.Add(-1)
		permit.Done(err)
		lost := !expiry.Stop() && errors.Is(context.Cause(ctx), jobqueue.ErrLost)
		w.settle(t, lost, err)
	})
}

// refused settles a task that the limiter of this process has not admitted.
func (w *worker) refused(t *task, err error) {
	w.settle(t, false, err)
	t.after, t.limited = min(t.after, limiterAgain), true
}

// patience is after how long without progress a handler's job counts as lost: a little
// less than the engine's, so that two handlers do not have it at once.
func (q *queue) patience() time.Duration { return q.ackWait - q.ackWait/20 }

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
	if !expiry.Stop() {
		return jobqueue.ErrLost
	}
	expiry.Reset(q.patience() - time.Since(asked))
	return nil
}

// settled reports whether the task needs no run, and ends it: it is no job, it is a dead
// letter that a crash left here, or too many workers died of it.
func (w *worker) settled(t *task) bool {
	q := w.q
	switch {
	case t.invalid != nil:
		w.bury(t, t.invalid.Error())
		return true
	case t.deliveries > 1 && q.isDead(w.ctx, t.mark):
		w.finishTask(t)
		return true
	case t.attempt > q.cfg.Attempts():
		t.attempt-- // this is none
		w.bury(t, "delivered "+strconv.Itoa(t.attempt)+" times and never finished: its workers died or took too long")
		return true
	}
	return false
}

// settle does what the error of a run says.
func (w *worker) settle(t *task, lost bool, err error) {
	q := w.q
	verdict := q.cfg.Judge(err, t.attempt)
	if w.ctx.Err() != nil {
		verdict = q.cfg.JudgeEnded(err)
	}
	t.late = lost
	switch {
	case q.closing.Err() != nil && !lost: // nothing that ends now counts
		q.counters.lost.Add(1)
		w.giveBack(t)
	case verdict.Fate == jobqueue.Finish:
		w.finished(t)
	case lost:
		q.counters.lost.Add(1) // it is another worker's
		w.kept.drop(t.msg)
		q.attempted(t)
	case verdict.Fate == jobqueue.Defer && verdict.After == 0: // Work has ended
		w.giveBack(t)
	case verdict.Fate == jobqueue.Bury:
		w.kept.add(t.msg)
		w.bury(t, verdict.Reason)
	case verdict.Fate == jobqueue.Defer:
		q.counters.deferred.Add(1)
		if t.suspect {
			w.putOff(t, verdict.After)
			break
		}
		w.kept.add(t.msg)
		t.after = verdict.After
	default:
		q.counters.retried.Add(1)
		w.kept.drop(t.msg)
		q.attempted(t)
		_ = t.msg.NakWithDelay(max(verdict.After, time.Millisecond))
	}
}

// finished ends a task whose handler has done it. Of several runs that do one job, the run whose
// answer ends the job counts it as done. A run that is late is lost as well.
func (w *worker) finished(t *task) {
	q := w.q
	if t.late {
		w.kept.drop(t.msg)
		q.counters.lost.Add(1)
	} else {
		w.kept.add(t.msg)
	}
	ended := (t.late || t.deliveries > 1) && q.hasEnded(t)
	if w.finishTask(t) && !ended {
		q.counters.done.Add(1)
	}
}

// hasEnded reports whether another run has ended the job. When the engine does not say, none has.
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

// giveBack has the engine hand the task to whoever asks next. That it was handed to this
// process is no attempt.
func (w *worker) giveBack(t *task) {
	w.kept.drop(t.msg)
	w.q.giveBack(t.msg)
}

// finishTask removes the task from the queue. While the engine is away it tries again
// for as long as the task is ours.
func (w *worker) finishTask(t *task) bool {
	defer w.kept.drop(t.msg)
	ctx, cancel := context.WithTimeout(w.q.closing, w.q.ackWait)
	defer cancel()
	for {
		try, done := w.q.asking(ctx)
		_, err := w.q.nc.RequestWithContext(try, t.msg.Reply, []byte("+ACK"))
		done()
		if err == nil {
			if t.recorded {
				w.q.forgetPast(t.mark)
			}
			return true
		}
		if !pause(ctx, retryPause) {
			if !t.late { // and counted
				w.q.counters.lost.Add(1)
			}
			return false
		}
	}
}
