package admissiongrpc

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

func retryDelay(err error) time.Duration {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			return info.RetryDelay.AsDuration()
		}
	}
	return 0
}

func TestWhatARefusedCallIsTold(t *testing.T) {
	second := 1500 * time.Millisecond
	for name, c := range map[string]struct {
		rejection spillway.Rejection
		timeout   time.Duration
		code      codes.Code
		pushback  string
		delay     time.Duration
	}{
		"shed":                        {spillway.Rejection{Reason: spillway.ReasonQueueFull, RetryAfter: second}, 0, codes.Unavailable, "1500", second},
		"a part of a millisecond":     {spillway.Rejection{Reason: spillway.ReasonMemory, RetryAfter: 1}, 0, codes.Unavailable, "1", 1},
		"quota":                       {spillway.Rejection{Reason: spillway.ReasonQuota, RetryAfter: second}, 0, codes.ResourceExhausted, "1500", second},
		"draining: another server":    {spillway.Rejection{Reason: spillway.ReasonDraining}, 0, codes.Unavailable, "", 0},
		"closed":                      {spillway.Rejection{Reason: spillway.ReasonClosed}, 0, codes.Unavailable, "-1", 0},
		"advice after the deadline":   {spillway.Rejection{Reason: spillway.ReasonQueueFull, RetryAfter: 2 * time.Hour}, time.Hour, codes.Unavailable, "-1", 2 * time.Hour},
		"advice before the deadline":  {spillway.Rejection{Reason: spillway.ReasonQueueFull, RetryAfter: second}, time.Hour, codes.Unavailable, "1500", second},
		"no time for the work":        {spillway.Rejection{Reason: spillway.ReasonDeadlineTooClose, RetryAfter: second}, time.Hour, codes.Unavailable, "-1", second},
		"no time, and no advice":      {spillway.Rejection{Reason: spillway.ReasonDeadlineTooClose}, time.Hour, codes.Unavailable, "-1", 0},
		"a signal's name is not told": {spillway.Rejection{Reason: spillway.ReasonSignal, Cause: "secret", RetryAfter: second}, 0, codes.Unavailable, "1500", second},
	} {
		t.Run(name, func(t *testing.T) {
			conn := connect(t, Config{}, &service{unary: func(context.Context) error {
				return fmt.Errorf("the handler's own limiter: %w", &c.rejection)
			}})
			ctx := t.Context()
			if c.timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.timeout)
				defer cancel()
			}
			trailer, err := do(ctx, conn)
			if got := status.Code(err); got != c.code {
				t.Errorf("code %v, want %v: %v", got, c.code, err)
			}
			if got := trailer.Get(pushbackKey); len(got) > 1 || len(got) == 0 && c.pushback != "" || len(got) == 1 && got[0] != c.pushback {
				t.Errorf("pushback %q, want %q", got, c.pushback)
			}
			if got := retryDelay(err); got != c.delay {
				t.Errorf("retry delay %v, want %v", got, c.delay)
			}
			reason := c.rejection.Reason.String()
			if got := trailer.Get(ReasonKey); len(got) != 1 || got[0] != reason {
				t.Errorf("reason %q, want %q", got, reason)
			}
			if got := status.Convert(err).Message(); got != "refused: "+reason {
				t.Errorf("message %q", got)
			}
		})
	}
}

// A limiter that has measured nothing has no advice. Its refusals once came without a pushback, so that
// clients tried again after milliseconds, and a service above took them for failures.
func TestARefusalWithoutAdviceHasAPushback(t *testing.T) {
	for name, rejection := range map[string]*spillway.Rejection{
		"full": {Reason: spillway.ReasonQueueFull}, "quota": {Reason: spillway.ReasonQuota}, "signal": {Reason: spillway.ReasonSignal}, "a reason that is added": {Reason: 99},
	} {
		conn := connect(t, Config{}, &service{unary: func(context.Context) error { return rejection }})
		different := map[time.Duration]bool{}
		for range 20 {
			trailer, err := do(t.Context(), conn)
			delay := retryDelay(err)
			want := strconv.FormatInt((delay + time.Millisecond - 1).Milliseconds(), 10)
			if got := trailer.Get(pushbackKey); delay <= 0 || delay > 2*firstAdvice+time.Millisecond || len(got) != 1 || got[0] != want {
				t.Errorf("%s: pushback %q, delay %v", name, got, delay)
			}
			if rejection.Reason == spillway.ReasonQueueFull && outcome(t.Context(), err) != spillway.ErrRejected {
				t.Errorf("%v is no sign of overload below", err)
			}
			different[delay] = true
		}
		if len(different) < 10 {
			t.Errorf("%s: all clients return together: %v", name, different)
		}
	}
}

// The first refusals of a limiter, cold as it is, are like the later ones.
func TestAColdLimiterHasAPushback(t *testing.T) {
	lim := fixed(t, 1)
	conn := connect(t, Config{Limiter: lim}, &service{})
	release := hold(t, lim)
	defer release()
	trailer, err := do(t.Context(), conn)
	if got := trailer.Get(pushbackKey); status.Code(err) != codes.Unavailable || len(got) != 1 || got[0] == "-1" || retryDelay(err) <= 0 {
		t.Errorf("%v, pushback %q", err, got)
	}
}

// Interceptors outside see the rejection. A refusal that a handler made itself is not answered
// twice.
func TestARefusalIsStillARejection(t *testing.T) {
	rejection := &spillway.Rejection{Reason: spillway.ReasonQuota}
	err := Refuse(t.Context(), rejection)
	if got, ok := errors.AsType[*spillway.Rejection](err); !ok || got != rejection || status.Code(err) != codes.ResourceExhausted {
		t.Error(err)
	}
	if again := Refuse(t.Context(), err); again != err {
		t.Errorf("refused twice: %v", again)
	}
	own := errors.New("no such patient")
	if Refuse(t.Context(), nil) != nil || Refuse(t.Context(), own) != own {
		t.Error("what is no refusal was changed")
	}
	if got := status.Code(Refuse(t.Context(), context.DeadlineExceeded)); got != codes.DeadlineExceeded {
		t.Error(got)
	}
	conn := connect(t, Config{}, &service{unary: func(ctx context.Context) error {
		return Refuse(ctx, &spillway.Rejection{Reason: spillway.ReasonMemory, RetryAfter: time.Second})
	}})
	trailer, _ := do(t.Context(), conn)
	if got := trailer.Get(pushbackKey); len(got) != 1 || got[0] != "1000" {
		t.Errorf("pushback %q", got)
	}
}

// A gRPC client with a retry policy obeys the pushback.
func TestAClientThatRetriesObeys(t *testing.T) {
	const policy = `{"methodConfig":[{"name":[{}],"retryPolicy":{"maxAttempts":3,"initialBackoff":"3600s","maxBackoff":"3600s","backoffMultiplier":1,"retryableStatusCodes":["UNAVAILABLE"]}}]}`
	for reason, want := range map[spillway.Reason]int64{spillway.ReasonQueueFull: 2, spillway.ReasonClosed: 1} {
		var calls atomic.Int64
		conn := connect(t, Config{}, &service{unary: func(context.Context) error {
			if calls.Add(1) == 1 {
				return &spillway.Rejection{Reason: reason, RetryAfter: time.Millisecond}
			}
			return nil
		}}, grpc.WithDefaultServiceConfig(policy))
		_, err := do(t.Context(), conn)
		if calls.Load() != want || (err == nil) != (want == 2) {
			t.Errorf("%v: %d calls, %v", reason, calls.Load(), err)
		}
	}
}

func TestWhatAnAnswerTeachesTheLimiter(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	shed := statusOf(&spillway.Rejection{Reason: spillway.ReasonQueueFull, RetryAfter: time.Second}, time.Second).Err()
	late := statusOf(&spillway.Rejection{Reason: spillway.ReasonDeadlineTooClose, RetryAfter: time.Second}, time.Second).Err()
	budget := statusOf(&spillway.Rejection{Reason: spillway.ReasonBudget, RetryAfter: time.Second}, time.Second).Err()
	quota := statusOf(&spillway.Rejection{Reason: spillway.ReasonQuota, RetryAfter: time.Second}, time.Second).Err()
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want limit.Outcome
	}{
		{t.Context(), nil, limit.Success},
		{t.Context(), status.Error(codes.NotFound, "none"), limit.Success},
		{t.Context(), fmt.Errorf("read: %w", status.Error(codes.InvalidArgument, "bad")), limit.Success},
		{t.Context(), status.Error(codes.Internal, "bug"), limit.Failed},
		{t.Context(), status.Error(codes.Code(99), "what"), limit.Failed},
		{t.Context(), errors.New("bug"), limit.Failed},
		{t.Context(), status.Error(codes.Unavailable, "connection refused"), limit.Failed},
		{t.Context(), status.Error(codes.ResourceExhausted, "message too large"), limit.Failed},
		{t.Context(), shed, limit.Overload},
		{t.Context(), quota, limit.Failed},
		{t.Context(), late, limit.Failed},
		{t.Context(), budget, limit.Failed},
		{t.Context(), &spillway.Rejection{Reason: spillway.ReasonDeadlineTooClose}, limit.Failed},
		{t.Context(), &spillway.Rejection{Reason: spillway.ReasonQuota}, limit.Failed},
		{t.Context(), &spillway.Rejection{Reason: spillway.ReasonBudget}, limit.Failed},
		{t.Context(), &spillway.Rejection{Reason: spillway.ReasonQueueFull}, limit.Overload},
		{t.Context(), status.Error(codes.DeadlineExceeded, "late"), limit.Deadline},
		{t.Context(), fmt.Errorf("query: %w", context.DeadlineExceeded), limit.Deadline},
		{t.Context(), status.Error(codes.Canceled, "left"), limit.Canceled},
		{ended, errors.New("driver: bad connection"), limit.Canceled},
		{ended, shed, limit.Canceled},
		{ended, &spillway.Rejection{Reason: spillway.ReasonQueueFull}, limit.Overload},
		{ended, nil, limit.Success},
	} {
		if got := limit.OutcomeOf(outcome(c.ctx, c.err)); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}

func FuzzPushback(f *testing.F) {
	f.Add(uint8(1), int64(0), int64(0))
	f.Add(uint8(3), int64(time.Second), int64(time.Minute))
	f.Add(uint8(10), int64(1), int64(1))
	f.Add(uint8(255), int64(1<<63-1), int64(0))
	f.Fuzz(func(t *testing.T, reason uint8, after, left int64) {
		ctx := t.Context()
		if left != 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, time.Now().Add(time.Duration(left)))
			defer cancel()
		}
		r := &spillway.Rejection{Reason: spillway.Reason(reason), RetryAfter: time.Duration(after)}
		advice := adviceOf(r)
		ms, ok := pushback(ctx, r.Reason, advice)
		if ms < -1 || ok == (ms == 0) {
			t.Errorf("%d %v", ms, ok)
		}
		if ms > 0 && ms < advice.Milliseconds() {
			t.Errorf("%d ms for an advice of %v", ms, advice)
		}
		if st := statusOf(r, advice); st.Code() != codes.Unavailable && st.Code() != codes.ResourceExhausted {
			t.Error(st)
		}
	})
}
