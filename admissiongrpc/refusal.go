package admissiongrpc

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/spillway-go/spillway"
)

// ReasonKey is the key of the trailer with the reason of a refusal, in snake case, such as
// "queue_full".
const ReasonKey = "spillway-reason"

// pushbackKey is the key of gRPC's retry pushback: the milliseconds after which the client may try
// again, or -1 if it should not.
const pushbackKey = "grpc-retry-pushback-ms"

// refused is the answer to a refused call: a status for gRPC, and the *spillway.Rejection for
// interceptors outside.
type refused struct {
	status    *status.Status
	rejection *spillway.Rejection
}

func (r *refused) Error() string              { return r.status.Err().Error() }
func (r *refused) GRPCStatus() *status.Status { return r.status }
func (r *refused) Unwrap() error              { return r.rejection }

// Refuse turns a limiter's error into gRPC's answer, for handlers that use a limiter themselves.
// For a *spillway.Rejection, Refuse sets the trailer of the call and returns an error that has a
// status and still matches the rejection. For the error of a context, it returns the error's
// status. It returns err unchanged if err is nil, has a status already, or is any other error. ctx
// is the handler's context. The interceptors apply Refuse to the errors of handlers.
func Refuse(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if hasStatus(err) {
		return err
	}
	rejection, ok := errors.AsType[*spillway.Rejection](err)
	if !ok {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return status.FromContextError(err).Err()
		}
		return err
	}
	advice := adviceOf(rejection)
	trailer := metadata.Pairs(ReasonKey, rejection.Reason.String())
	if ms, ok := pushback(ctx, rejection.Reason, advice); ok {
		trailer.Set(pushbackKey, strconv.FormatInt(ms, 10))
	}
	_ = grpc.SetTrailer(ctx, trailer) // without the trailer the status says enough
	return &refused{statusOf(rejection, advice), rejection}
}

// firstAdvice is the mean time until a retry where a limiter has measured nothing yet, as in
// admissionhttp.
const firstAdvice = time.Second

// adviceOf returns when the client should try again. Without a measured time it is a random time around
// firstAdvice, so that clients that are refused together do not return together: else their own
// backoff, of some milliseconds, would bring them to a limiter that knows nothing yet. Zero for an
// instance that stops, since another server may be free, and where a retry is pointless.
func adviceOf(r *spillway.Rejection) time.Duration {
	switch {
	case r.RetryAfter > 0:
		return r.RetryAfter
	case r.Reason == spillway.ReasonDraining, r.Reason == spillway.ReasonClosed, r.Reason == spillway.ReasonDeadlineTooClose:
		return 0
	}
	return time.Millisecond + rand.N(2*firstAdvice)
}

// hasStatus reports whether err has a status. Unlike status.FromError, hasStatus does not build a
// status for other errors.
func hasStatus(err error) bool {
	_, ok := errors.AsType[interface {
		error
		GRPCStatus() *status.Status
	}](err)
	return ok
}

// statusOf returns the status of a refusal, with the reason but without the cause: callers must not
// see which signals a server watches.
func statusOf(r *spillway.Rejection, advice time.Duration) *status.Status {
	code := codes.Unavailable
	if r.Reason == spillway.ReasonQuota {
		code = codes.ResourceExhausted
	}
	st := status.New(code, refusedFor+r.Reason.String())
	if advice <= 0 {
		return st
	}
	detailed, err := st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(advice)})
	if err != nil {
		return st
	}
	return detailed
}

// pushback returns when the client should try again, in milliseconds rounded up, or -1 if a retry
// is pointless. False: the client decides, and may find another server.
func pushback(ctx context.Context, reason spillway.Reason, advice time.Duration) (ms int64, ok bool) {
	if reason == spillway.ReasonClosed {
		return -1, true
	}
	if end, has := ctx.Deadline(); has {
		if reason == spillway.ReasonDeadlineTooClose || advice >= time.Until(end) {
			return -1, true
		}
	}
	if advice <= 0 {
		return 0, false
	}
	ms = advice.Milliseconds()
	if advice%time.Millisecond > 0 {
		ms++
	}
	return ms, true
}

const refusedFor = "refused: "

// noOverload has the reasons for a refusal by a service below that are no sign of overload.
var noOverload = []spillway.Reason{spillway.ReasonQuota, spillway.ReasonDeadlineTooClose, spillway.ReasonBudget}

// showsOverload reports whether the reason in the message of a refusal is not in noOverload.
func showsOverload(message string) bool {
	reason := strings.TrimPrefix(message, refusedFor)
	return !slices.ContainsFunc(noOverload, func(r spillway.Reason) bool { return reason == r.String() })
}

// errFailed is the outcome of an answer that is no sample, and of a handler that panics.
var errFailed = errors.New("admissiongrpc: the handler failed")

// outcome returns the argument of Permit.Done for a call that ended with err.
//
// An answer of the handler is a sample, including NOT_FOUND and similar codes. UNAVAILABLE with
// RetryInfo is a refusal by a service below, and a sign of overload there. When ctx has ended, the
// error is taken as a result of that end. Other failures are no samples, and neither is a caller's
// quota, which does not show the capacity. A deadline too close for the service below is no sample
// either: callers choose their deadlines. Nor is a budget that other replicas use up.
func outcome(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if r, ok := errors.AsType[*spillway.Rejection](err); ok {
		if slices.Contains(noOverload, r.Reason) {
			return errFailed
		}
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !hasStatus(err) {
		return err
	}
	st := status.Convert(err)
	switch st.Code() {
	case codes.OK, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied,
		codes.Unauthenticated, codes.FailedPrecondition, codes.Aborted, codes.OutOfRange:
		return nil
	case codes.DeadlineExceeded:
		return context.DeadlineExceeded
	case codes.Canceled:
		return context.Canceled
	case codes.Unavailable:
		if showsOverload(st.Message()) && slices.ContainsFunc(st.Details(), isRetryInfo) {
			return spillway.ErrRejected
		}
	}
	return errFailed
}

func isRetryInfo(detail any) bool { _, ok := detail.(*errdetails.RetryInfo); return ok }
