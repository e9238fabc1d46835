// Package engine decides what becomes of a job after a run, the same in every engine of package
// jobqueue. Package jobqueuetest checks an engine.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/internal/ends"
)

// errGoexit ends a run whose handler called runtime.Goexit.
var errGoexit = errors.New("jobqueue: the handler ended its goroutine with runtime.Goexit")

// Run calls the handler on the caller's goroutine and passes the handler's error
// to settle. A panic becomes a *spillway.PanicError. Goexit becomes an error, and the goroutine
// still ends. Run always calls settle, before Run returns or the goroutine ends.
func Run(ctx context.Context, handler jobqueue.Handler, d *jobqueue.Delivery, settle func(error)) {
	err := errGoexit
	defer func() {
		if v := recover(); v != nil {
			err = &spillway.PanicError{Value: v, Stack: debug.Stack()}
		}
		settle(err)
	}()
	err = handler(spillway.WithPriority(ctx, d.Priority), d)
}

// Fate is the state of a job after a run.
type Fate uint8

const (
	Finish Fate = iota + 1 // the job is done
	Retry                  // run again; the attempt counts
	Defer                  // run again; the attempt does not count
	Bury                   // make the job a dead letter
)

// Settlement is what an engine does with a job after a run.
type Settlement struct {
	Fate   Fate
	After  time.Duration // delay until the job is ready again; for Retry and Defer
	Away   bool          // for Defer: this process cannot do the job
	Reason string        // for Bury
}

const (
	defaultAttempts   = 10
	defaultBackoff    = time.Second
	defaultMaxBackoff = 5 * time.Minute
	deferAtLeast      = 100 * time.Millisecond // keeps a rejection without advice from causing a busy loop
	longestReason     = 4 << 10
)

// Check returns the faults of the policy, one on a line.
func Check(p jobqueue.Policy) error {
	var faults []error
	if p.MaxAttempts < 0 {
		faults = append(faults, fmt.Errorf("jobqueue.Policy: MaxAttempts is %d: it must not be negative", p.MaxAttempts))
	}
	if p.Backoff < 0 {
		faults = append(faults, fmt.Errorf("jobqueue.Policy: Backoff is %s: it must not be negative", p.Backoff))
	}
	if p.MaxBackoff < 0 {
		faults = append(faults, fmt.Errorf("jobqueue.Policy: MaxBackoff is %s: it must not be negative", p.MaxBackoff))
	}
	return errors.Join(faults...)
}

// Attempts returns the policy's MaxAttempts, or the default.
func Attempts(p jobqueue.Policy) int {
	return cmp.Or(p.MaxAttempts, defaultAttempts)
}

// Settle decides the fate of a job whose run number attempt ended with err. Jitter raises the
// back-off by at most a quarter, so that jobs that failed together do not return together.
func Settle(p jobqueue.Policy, err error, attempt int) Settlement {
	if err == nil {
		return Settlement{Fate: Finish}
	}
	reason, sound := textOf(err)
	if !sound {
		err = errors.New(reason)
	}
	if _, ok := errors.AsType[*ends.Dead](err); ok {
		return Settlement{Fate: Bury, Reason: clip(reason)}
	}
	if a, ok := errors.AsType[*ends.Again](err); ok {
		return Settlement{Fate: Defer, After: max(deferAtLeast, a.Wait), Away: a.Elsewhere}
	}
	if errors.Is(err, spillway.ErrRejected) {
		after := deferAtLeast
		if r, ok := errors.AsType[*spillway.Rejection](err); ok {
			after = max(after, r.RetryAfter)
		}
		return Settlement{Fate: Defer, After: after}
	}
	if attempt >= Attempts(p) {
		return Settlement{Fate: Bury, Reason: clip(reason)}
	}
	if r, ok := errors.AsType[*ends.Retry](err); ok {
		return Settlement{Fate: Retry, After: r.Wait}
	}
	return Settlement{Fate: Retry, After: backoff(p, attempt)}
}

// SettleEnded is Settle for a run that ended after its Work had ended, by a cancel or by a deadline.
// Such a run may have failed because Work ended, whatever its error is: the job runs again at once,
// and no attempt is counted. A job that is done, Dead, NotYet, NotHere or rejected keeps its settlement.
func SettleEnded(p jobqueue.Policy, err error) Settlement {
	v := Settle(p, err, 0)
	if v.Fate == Retry {
		v = Settlement{Fate: Defer}
	}
	return v
}

// textOf returns the error's text. An error may panic, for example a nil pointer in the interface.
// Such a panic must not end the process: the job would end the next process too. After a panic,
// sound is false.
func textOf(err error) (text string, sound bool) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprintf("jobqueue: the handler's error, a %T, panics: %v", err, v)
		}
	}()
	_, _ = errors.AsType[*ends.Dead](err) // as Settle does
	_ = errors.Is(err, spillway.ErrRejected)
	return err.Error(), true
}

func backoff(p jobqueue.Policy, attempt int) time.Duration {
	first := cmp.Or(p.Backoff, defaultBackoff)
	most := cmp.Or(p.MaxBackoff, max(defaultMaxBackoff, first))
	wait := first
	for i := 1; i < attempt && wait < most; i++ {
		wait += min(wait, most-wait) // avoids overflow of Duration
	}
	wait = min(wait, most, math.MaxInt64/2)
	return wait + time.Duration(rand.Int64N(int64(wait/4)+1))
}

// clip bounds a reason, so that the stack of a panic does not fill the dead letters.
func clip(reason string) string {
	if len(reason) > longestReason {
		reason = strings.ToValidUTF8(reason[:longestReason], "") + " …"
	}
	return reason
}
