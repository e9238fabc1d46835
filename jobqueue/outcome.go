package jobqueue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spillway-go/spillway"
)

// RetryAfter returns an error that makes the job run again after wait at the earliest, in place of
// the back-off. The run counts as an attempt. The error wraps err, which may be nil.
func RetryAfter(wait time.Duration, err error) error {
	return &retryError{wait: max(wait, 0), err: err}
}

type retryError struct {
	wait time.Duration
	err  error
}

func (e *retryError) Error() string {
	if e.err == nil {
		return "jobqueue: again after " + e.wait.String()
	}
	return e.err.Error()
}

func (e *retryError) Unwrap() error { return e.err }

// Dead returns an error that makes the job a dead letter at once, for jobs that no retry can help.
func Dead(reason string) error { return &deadError{reason} }

type deadError struct{ reason string }

func (e *deadError) Error() string { return e.reason }

// errGoexit ends a run whose handler called runtime.Goexit.
var errGoexit = errors.New("jobqueue: the handler ended its goroutine with runtime.Goexit")

// Run is for engines: it calls the handler on the caller's goroutine and passes the handler's error
// to settle. A panic becomes a *spillway.PanicError. Goexit becomes an error, and the goroutine
// still ends. Run always calls settle, before Run returns or the goroutine ends.
func Run(ctx context.Context, handler Handler, d *Delivery, settle func(error)) {
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

// Verdict tells an engine what to do with a job after a run.
type Verdict struct {
	Fate   Fate
	After  time.Duration // delay until the job is ready again; for Retry and Defer
	Reason string        // for Bury
}

// Policy sets how often and when a job is retried. All engines use it.
type Policy struct {
	MaxAttempts int           // zero: 10
	Backoff     time.Duration // before the second attempt, doubled for each further one; zero: 1 s
	MaxBackoff  time.Duration // zero: 5 min
}

const (
	defaultAttempts   = 10
	defaultBackoff    = time.Second
	defaultMaxBackoff = 5 * time.Minute
	deferAtLeast      = 100 * time.Millisecond // keeps a rejection without advice from causing a busy loop
	longestReason     = 4 << 10
)

// Check returns the faults of the policy, one on a line.
func (p Policy) Check() error {
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

// Attempts returns MaxAttempts, or the default.
func (p Policy) Attempts() int {
	if p.MaxAttempts == 0 {
		return defaultAttempts
	}
	return p.MaxAttempts
}

// Judge decides the fate of a job whose run number attempt ended with err. Jitter raises the
// back-off by at most a quarter, so that jobs that failed together do not return together.
func (p Policy) Judge(err error, attempt int) Verdict {
	if err == nil {
		return Verdict{Fate: Finish}
	}
	reason, sound := textOf(err)
	if !sound {
		err = errors.New(reason)
	}
	if _, ok := errors.AsType[*deadError](err); ok {
		return Verdict{Fate: Bury, Reason: clip(reason)}
	}
	if errors.Is(err, spillway.ErrRejected) {
		after := deferAtLeast
		if r, ok := errors.AsType[*spillway.Rejection](err); ok {
			after = max(after, r.RetryAfter)
		}
		return Verdict{Fate: Defer, After: after}
	}
	if attempt >= p.Attempts() {
		return Verdict{Fate: Bury, Reason: clip(reason)}
	}
	if r, ok := errors.AsType[*retryError](err); ok {
		return Verdict{Fate: Retry, After: r.wait}
	}
	return Verdict{Fate: Retry, After: p.backoff(attempt)}
}

// JudgeEnded is Judge for a run that ended after its Work had ended, by a cancel or by a deadline.
// Such a run may have failed because Work ended, whatever its error is: the job runs again at once,
// and no attempt is counted. A job that is done, Dead or rejected keeps its verdict.
func (p Policy) JudgeEnded(err error) Verdict {
	v := p.Judge(err, 0)
	if v.Fate == Retry {
		v = Verdict{Fate: Defer}
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
	_, _ = errors.AsType[*deadError](err) // as Judge does
	_ = errors.Is(err, spillway.ErrRejected)
	return err.Error(), true
}

func (p Policy) backoff(attempt int) time.Duration {
	first, most := p.Backoff, p.MaxBackoff
	if first == 0 {
		first = defaultBackoff
	}
	if most == 0 {
		most = max(defaultMaxBackoff, first)
	}
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
