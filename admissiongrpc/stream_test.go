package admissiongrpc

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limiter"
)

type (
	request  = testpb.StreamingOutputCallRequest
	response = testpb.StreamingOutputCallResponse
)

// inFlight fails unless the given numbers of calls hold a slot and run without one.
func inFlight(t *testing.T, lim *limiter.Limiter, slots, long int) {
	t.Helper()
	if s := lim.Stats(); s.InFlight != slots || s.LongInFlight != long {
		t.Errorf("%d in flight and %d long, want %d and %d", s.InFlight, s.LongInFlight, slots, long)
	}
}

// steps lets a test look at a handler between its calls of the stream: the handler signals and
// waits.
type steps struct{ at, on chan struct{} }

func newSteps() steps { return steps{make(chan struct{}), make(chan struct{})} }

func (s steps) here()    { s.at <- struct{}{}; <-s.on }
func (s steps) wait()    { <-s.at }
func (s steps) proceed() { s.on <- struct{}{} }

func TestAStreamHoldsItsSlotForItsFirstMessage(t *testing.T) {
	lim := fixed(t, 1)
	step := newSteps()
	conn := connect(t, Config{Limiter: lim}, &service{stream: func(ss grpc.ServerStream) error {
		step.here()
		if err := ss.RecvMsg(&request{}); err != nil {
			return err
		}
		step.here()
		for range 2 {
			if err := ss.SendMsg(&response{}); err != nil {
				return err
			}
			step.here()
		}
		return nil
	}})
	ss := must(testpb.NewTestServiceClient(conn).FullDuplexCall(t.Context()))
	step.wait()
	inFlight(t, lim, 0, 0) // a client that sends nothing holds no slot
	step.proceed()
	check(t, ss.Send(&request{}))
	step.wait()
	inFlight(t, lim, 1, 0)
	if _, err := do(t.Context(), conn); status.Code(err) != codes.Unavailable {
		t.Errorf("the slot is taken: %v", err)
	}
	for range 2 {
		step.proceed()
		step.wait()
		inFlight(t, lim, 0, 1)
	}
	if _, err := do(t.Context(), conn); err != nil {
		t.Errorf("the slot is free: %v", err)
	}
	step.proceed()
	if err := rest(ss); err != io.EOF {
		t.Error(err)
	}
	if err := lim.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	inFlight(t, lim, 0, 0)
	if s := lim.Stats(); s.Offered != 3 || s.Admitted != 2 || s.Completed != 2 {
		t.Errorf("%+v", s)
	}
}

func TestAStreamThatAsksForMoreIsLong(t *testing.T) {
	lim := fixed(t, 1)
	step := newSteps()
	conn := connect(t, Config{Limiter: lim}, &service{stream: func(ss grpc.ServerStream) error {
		for {
			err := ss.RecvMsg(&testpb.StreamingInputCallRequest{})
			step.here()
			if err != nil {
				return ss.SendMsg(&testpb.StreamingInputCallResponse{})
			}
		}
	}})
	ss := must(testpb.NewTestServiceClient(conn).StreamingInputCall(t.Context()))
	for i := range 3 {
		check(t, ss.Send(&testpb.StreamingInputCallRequest{}))
		step.wait()
		inFlight(t, lim, 1-min(i, 1), min(i, 1))
		step.proceed()
	}
	go func() { step.wait(); step.proceed() }()
	if _, err := ss.CloseAndRecv(); err != nil {
		t.Error(err)
	}
}

func TestAShortStreamHoldsItsSlotToTheEnd(t *testing.T) {
	lim := fixed(t, 1)
	step := newSteps()
	conn := connect(t, Config{Limiter: lim, Short: func(m string) bool { return m == testpb.TestService_StreamingOutputCall_FullMethodName }}, &service{
		stream: func(ss grpc.ServerStream) error {
			for range 2 {
				if err := ss.SendMsg(&response{}); err != nil {
					return err
				}
			}
			step.here()
			return nil
		},
	})
	ss := must(testpb.NewTestServiceClient(conn).StreamingOutputCall(t.Context(), &request{}))
	step.wait()
	inFlight(t, lim, 1, 0)
	step.proceed()
	err := rest(ss)
	if s := lim.Stats(); err != io.EOF || s.Completed != 1 || s.Service.Count() == 0 {
		t.Errorf("%v, %d completed, %d samples", err, s.Completed, s.Service.Count())
	}
}

// A stream is refused at its first message, and the error of the handler does not replace the
// refusal.
func TestARefusedStreamIsTold(t *testing.T) {
	lim := fixed(t, 1)
	defer hold(t, lim)()
	for name, handler := range map[string]func(grpc.ServerStream) error{
		"receives": func(ss grpc.ServerStream) error { return ss.RecvMsg(&request{}) },
		"sends":    func(ss grpc.ServerStream) error { return ss.SendMsg(&response{}) },
		"hides it": func(ss grpc.ServerStream) error { _ = ss.RecvMsg(&request{}); return nil },
		"wraps it": func(ss grpc.ServerStream) error { return errors.Join(ss.RecvMsg(&request{}), errors.New("failed")) },
		"goes on": func(ss grpc.ServerStream) error {
			_ = ss.RecvMsg(&request{})
			return ss.SendMsg(&response{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			conn := connect(t, Config{Limiter: lim}, &service{stream: handler})
			ss := must(testpb.NewTestServiceClient(conn).FullDuplexCall(t.Context()))
			if err := ss.Send(&request{}); err != nil && err != io.EOF { // EOF: the stream was already refused
				t.Fatal(err)
			}
			_, err := ss.Recv()
			if reason := ss.Trailer().Get(ReasonKey); status.Code(err) != codes.Unavailable || len(reason) != 1 {
				t.Errorf("%v, reason %q", err, reason)
			}
		})
	}
	if s := lim.Stats(); s.Rejected != 5 {
		t.Errorf("%d refused", s.Rejected)
	}
}

func TestAStreamWithoutMessagesIsAdmittedAtItsEnd(t *testing.T) {
	lim := fixed(t, 1)
	conn := connect(t, Config{Limiter: lim}, &service{stream: func(ss grpc.ServerStream) error {
		if err := ss.RecvMsg(&testpb.StreamingInputCallRequest{}); err != io.EOF {
			return err
		}
		inFlight(t, lim, 1, 0)
		return ss.SendMsg(&testpb.StreamingInputCallResponse{})
	}})
	ss := must(testpb.NewTestServiceClient(conn).StreamingInputCall(t.Context()))
	if _, err := ss.CloseAndRecv(); err != nil {
		t.Error(err)
	}
}

// quiet is the ServerStream below, without a connection.
type quiet struct {
	grpc.ServerStream
	ctx context.Context
}

func (q quiet) Context() context.Context     { return q.ctx }
func (q quiet) RecvMsg(any) error            { return nil }
func (q quiet) SendMsg(any) error            { return nil }
func (q quiet) SetTrailer(md metadata.MD)    {}
func (q quiet) SendHeader(metadata.MD) error { return nil }

// Goroutines that outlive the handler cannot keep a slot.
func TestAStreamUsedAfterItsHandlerLosesNoSlot(t *testing.T) {
	lim := fixed(t, 4)
	i := must(New(Config{Limiter: lim}))
	var wg sync.WaitGroup
	for range 1000 {
		err := i.StreamServerInterceptor(nil, quiet{ctx: t.Context()}, &grpc.StreamServerInfo{FullMethod: "/s/m"}, func(_ any, ss grpc.ServerStream) error {
			wg.Go(func() { _ = ss.SendMsg(nil) })
			wg.Go(func() { _ = ss.RecvMsg(nil); _ = ss.RecvMsg(nil) })
			return nil
		})
		if _, refused := errors.AsType[*spillway.Rejection](err); err != nil && !refused {
			t.Fatal(err)
		}
	}
	wg.Wait()
	inFlight(t, lim, 0, 0)
}

// A handler that recovered a panic of admission once continued without a slot, as if admitted.
func TestAnAdmissionThatPanicsAdmitsNobody(t *testing.T) {
	lim := must(limiter.New(limiter.Config{Observer: &limiter.Observer{Admitted: func(spillway.Priority, time.Duration) { panic("bug") }}}))
	conn := connect(t, Config{Limiter: lim}, &service{stream: func(ss grpc.ServerStream) error {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("swallowed")
				}
			}()
			_ = ss.RecvMsg(&request{})
		}()
		_ = ss.SendMsg(&response{})
		return nil
	}})
	ss, err := testpb.NewTestServiceClient(conn).FullDuplexCall(t.Context())
	if err == nil {
		err = ss.Send(&request{})
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ss.Recv(); status.Code(err) != codes.Internal {
		t.Errorf("the stream went on: %v", err)
	}
	inFlight(t, lim, 0, 0)
}
