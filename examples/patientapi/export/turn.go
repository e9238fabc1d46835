package export

import (
	"context"
	"errors"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
)

const (
	tries      = 6                // of a question to the store
	firstPause = time.Second / 10 // before the second; each further one is twice as long
)

// Turn asks the store as every export does, a stream too: behind everybody else, and
// again where it may go better in a moment. Timeout bounds each try; 0 means that nothing
// does. The error is that of the last try.
func Turn[T any](ctx context.Context, r *patterns.Runner, timeout time.Duration, fill func(context.Context, *T) error) (*patterns.Answer[T], error) {
	ctx = spillway.WithPriority(ctx, spillway.Low)
	pause := firstPause
	for try := 1; ; try++ {
		answer, err := oneTurn(ctx, r, timeout, fill)
		if err == nil || try == tries || ctx.Err() != nil || !mayPass(err) {
			return answer, err
		}
		if rejection, ok := errors.AsType[*spillway.Rejection](err); ok {
			pause = max(pause, rejection.RetryAfter)
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
		pause *= 2
	}
}

// oneTurn asks once. It waits for the limiter in front, where there is one. The permit
// ends without a sample: no caller waits for the answer to this question.
func oneTurn[T any](ctx context.Context, r *patterns.Runner, timeout time.Duration, fill func(context.Context, *T) error) (*patterns.Answer[T], error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	if lim := r.Admission(); lim != nil {
		permit, err := lim.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		defer permit.Release()
	}
	return patterns.Run(ctx, r, fill)
}

// mayPass reports whether it may go better in a moment. A service that stops does not
// wait for its exports.
func mayPass(err error) bool {
	if rejection, ok := errors.AsType[*spillway.Rejection](err); ok {
		return rejection.Reason != spillway.ReasonDraining && rejection.Reason != spillway.ReasonClosed
	}
	return errors.Is(err, patientapi.ErrUnavailable)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
