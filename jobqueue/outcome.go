package jobqueue

import (
	"time"

	"github.com/spillway-go/spillway/jobqueue/internal/ends"
)

// RetryAfter returns an error that makes the job run again after wait at the earliest, in place of
// the back-off. The run counts as an attempt. The error wraps err, which may be nil.
func RetryAfter(wait time.Duration, err error) error {
	return &ends.Retry{Wait: max(wait, 0), Err: err}
}

// NotYet returns an error that makes the job run again after wait at the earliest. The run counts as
// no attempt, so a job that is never ready runs for ever. The error wraps err, which may be nil.
func NotYet(wait time.Duration, err error) error {
	return &ends.Again{Wait: max(wait, 0), Err: err}
}

// NotHere returns an error for a job that this process cannot do, such as a job of a kind that only
// the next version knows. The job goes to whichever process asks for jobs in a second, which may be
// this one again. The run counts as no attempt. The error wraps err, which may be nil.
func NotHere(err error) error { return &ends.Again{Wait: time.Second, Elsewhere: true, Err: err} }

// Dead returns an error that makes the job a dead letter at once, for jobs that no retry can help.
func Dead(reason string) error { return &ends.Dead{Reason: reason} }

// Policy sets how often and when a job is retried. All engines use it.
type Policy struct {
	MaxAttempts int           // zero: 10
	Backoff     time.Duration // before the second attempt, doubled for each further one; zero: 1 s
	MaxBackoff  time.Duration // zero: 5 min
}
