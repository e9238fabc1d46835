package fanout

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/spillway-go/spillway"
)

// worker runs attempts: the caller, a helper, or the goroutine of a second attempt.
type worker struct {
	caller   bool
	token    bool // holds a token and a permit of admit
	departed bool // is no user of the call any more
	last     bool // was the last user of a call that can be used again

	// The attempt.
	running bool // an attempt was given to the worker, and step has not taken its end
	branch  int
	ctx     context.Context
	cancel  context.CancelFunc // may be nil
	began   time.Duration
	ended   time.Duration
	ending
}

// next takes the end of w's attempt and starts another attempt. It returns false if there is none;
// unless w is the caller, w has then departed.
func (c *call) next(w *worker) bool {
	for {
		report, last, started := c.step(w)
		if !report {
			return started
		}
		c.reportLate(c.branches[w.branch], w.err, last)
	}
}

// finish completes what is known of the end of w's attempt, which returned err. It calls methods of
// the error and of contexts. These may be user code, so the call is not locked.
func (c *call) finish(w *worker, err error) {
	w.ended, w.err = c.clock(), err
	w.ask(w.ctx, c.parent)
	if w.rejected {
		c.pauseHedging()
	}
}

// ask fills in the fields of e that follow from the attempt, the error, and the contexts.
func (e *ending) ask(ctx, parent context.Context) {
	defer e.catch()
	*e = ending{attempt: e.attempt, err: e.err}
	if e.over = ctx.Err(); e.over != nil {
		e.own = endedAlone(ctx, parent)
	}
	e.compare()
}

// compare finds out what the error matches.
func (e *ending) compare() {
	defer e.catch()
	if e.err != nil {
		e.rejected = errors.Is(e.err, spillway.ErrRejected)
		e.matches = e.over != nil && errors.Is(e.err, e.over)
	}
}

// catch is deferred. A panic in a method of the error or of a context is a panic of the branch.
func (e *ending) catch() {
	if p := recover(); p != nil {
		e.err = &spillway.PanicError{Value: p, Stack: debug.Stack()}
	}
}

// clock reads the clock only if the call is measured: two readings per branch cost a tenth of
// starting a branch.
func (c *call) clock() time.Duration {
	if c.weight > 0 {
		return c.now()
	}
	return 0
}

// wait waits until the call is over, and closes it, with its result in out.
func (c *call) wait(out *outcome) {
	var timeout <-chan time.Time
	for {
		over, next := c.check(out)
		if over {
			return
		}
		if next > 0 {
			timeout = c.alarm(next)
		}
		select {
		case <-c.wake:
		case <-c.parent.Done():
		case <-timeout:
		}
	}
}

// signal wakes the receiver of wake, which has room for one signal.
func signal(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

func (c *call) alarm(d time.Duration) <-chan time.Time {
	if c.timer == nil {
		c.timer = time.NewTimer(d)
	} else {
		c.timer.Reset(d)
	}
	return c.timer.C
}
