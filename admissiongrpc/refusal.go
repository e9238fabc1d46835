package admissiongrpc

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/spillway-go/spillway"
)

// The keys of the trailer of a refused call.
const (
	// ReasonKey carries the reason in snake case, such as "queue_full".
	ReasonKey = "spillway-reason"
	// PushbackKey carries gRPC's retry pushback: after how many milliseconds the
	// client may try again, or -1 if it should not.
	PushbackKey = "grpc-retry-pushback-ms"
)

// refused is the answer to a call that was refused: a status for gRPC, and the
// *spillway.Rejection for interceptors outside.
type refused struct {
	status    *status.Status
	rejection *spillway.Rejection
}

func (r *refused) Error() string              { return r.status.Err().Error() }
func (r *refused) GRPCStatus() *status.Status { return r.status }
func (r *refused) Unwrap() error              { return r.rejection }

// Refuse makes gRPC's answer of a limiter's error, for handlers that ask a limiter
// themselves. For a *spillway.Rejection it sets the trailer of the call and returns an
// error that has a status and still matches the rejection; for an error of a context
// the status of it; for nil and for errors that have a status already, err as it is,
// and so for any other. ctx is that of the handler. The interceptors do this with
// what a handler returns.
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
	trailer := metadata.Pairs(ReasonKey, rejection.Reason.String())
	if ms, ok := pushback(ctx, rejection); ok {
		trailer.Set(PushbackKey, strconv.FormatInt(ms, 10))
	}
	_ = grpc.SetTrailer(ctx, trailer) // without it the status says enough
	return &refused{statusOf(rejection), rejection}
}

// hasStatus reports whether err has a status. Unlike status.FromError it makes none.
func hasStatus(err error) bool {
	_, ok := errors.AsType[interface {
		error
		GRPCStatus() *status.Status
	}](err)
	return ok
}

// statusOf returns the status of a refusal. It names the reason, and not the cause:
// what signals a server watches is not for its callers.
func statusOf(r *spillway.Rejection) *status.Status {
	code := codes.Unavailable
	if r.Reason == spillway.Quota {
		code = codes.ResourceExhausted
	}
	st := status.New(code, refusedFor+r.Reason.String())
	if r.RetryAfter <= 0 {
		return st
	}
	detailed, err := st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(r.RetryAfter)})
	if err != nil {
		return st
	}
	return detailed
}

// pushback returns when the client should try again, in milliseconds rounded up, or -1
// if that is pointless. False: it is left to the client, which may find another
// server.
func pushback(ctx context.Context, r *spillway.Rejection) (ms int64, ok bool) {
	if r.Reason == spillway.Closed {
		return -1, true
	}
	if end, has := ctx.Deadline(); has {
		if r.Reason == spillway.DeadlineTooClose || r.RetryAfter >= time.Until(end) {
			return -1, true
		}
	}
	if r.RetryAfter <= 0 {
		return 0, false
	}
	ms = r.RetryAfter.Milliseconds()
	if r.RetryAfter%time.Millisecond > 0 {
		ms++
	}
	return ms, true
}

const refusedFor = "refused: "

var tooClose = refusedFor + spillway.DeadlineTooClose.String()

// errFailed stands for an answer that is no sample.
var errFailed = errors.New("admissiongrpc: the handler failed")

// outcome returns what Permit.Done is told of a call that ended with err.
//
// What the handler answers is a sample, also NOT_FOUND and its like. UNAVAILABLE with
// RetryInfo is a refusal below, and a sign of overload there. When the context has
// ended, an error came of that. A failure is no sample, and neither is a quota of the
// caller, which says nothing about the capacity, nor a deadline that was too close for
// the work below: callers choose theirs.
func outcome(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if r, ok := errors.AsType[*spillway.Rejection](err); ok {
		if r.Reason == spillway.Quota || r.Reason == spillway.DeadlineTooClose {
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
		if st.Message() != tooClose && slices.ContainsFunc(st.Details(), isRetryInfo) {
			return spillway.ErrRejected
		}
	}
	return errFailed
}

func isRetryInfo(detail any) bool { _, ok := detail.(*errdetails.RetryInfo); return ok }
