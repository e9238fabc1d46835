package main

import (
	"context"
	"errors"
	"net"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissiongrpc"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

func TestShedsAndRecovers(t *testing.T) {
	lim, err := limiter.New(limiter.Config{Name: "grpc", Law: limit.NewFixed(1), QueueSize: -1})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, l, lim) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	client := testpb.NewTestServiceClient(conn)
	call := func(what string, want codes.Code, opts ...grpc.CallOption) {
		t.Helper()
		if _, err := client.EmptyCall(ctx, &testpb.Empty{}, opts...); status.Code(err) != want {
			t.Fatalf("%s: %v, want %v", what, err, want)
		}
	}

	call("before", codes.OK)
	for range 20 {
		_, err := client.UnaryCall(ctx, &testpb.SimpleRequest{ResponseSize: 1})
		if status.Code(err) != codes.Internal {
			t.Fatal("panic:", err)
		}
		stream, err := client.StreamingOutputCall(ctx, &testpb.StreamingOutputCallRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		if status.Code(err) != codes.Internal {
			t.Fatal("panic in a stream:", err)
		}
	}
	call("after the panics", codes.OK)

	other, err := lim.Acquire(ctx) // other work takes the slot
	if err != nil {
		t.Fatal(err)
	}
	var trailer metadata.MD
	call("shed", codes.Unavailable, grpc.Trailer(&trailer))
	if got := trailer.Get(admissiongrpc.ReasonKey); len(got) != 1 || got[0] != "queue_full" {
		t.Errorf("the reason is %q", got)
	}
	if got := trailer.Get("grpc-retry-pushback-ms"); len(got) != 1 {
		t.Errorf("the pushback is %q", got)
	} else if ms, err := strconv.Atoi(got[0]); err != nil || ms < 1 {
		t.Errorf("the pushback is %q: %v", got, err)
	}
	if _, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}); err != nil {
		t.Error("the health service was shed:", err)
	}
	other.Release()
	call("after the shed one", codes.OK)

	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error("stop:", err)
	}
	if s := lim.Stats(); s.Admitted != s.Completed || s.InFlight != 0 || s.Rejected != 1 {
		t.Errorf("the counts do not fit: %+v", s)
	}
}

// stuck is a service whose calls ignore their context.
type stuck struct {
	testpb.UnimplementedTestServiceServer
	called, release chan struct{}
}

func (s stuck) EmptyCall(context.Context, *testpb.Empty) (*testpb.Empty, error) {
	close(s.called)
	<-s.release
	return &testpb.Empty{}, nil
}

// GracefulStop waits for handlers, also after Stop, which then waits as well: each of
// them once held the process for ever.
func TestAHandlerThatHangsDoesNotHoldTheStop(t *testing.T) {
	lim, err := limiter.New(limiter.Config{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	service := stuck{called: make(chan struct{}), release: make(chan struct{})}
	defer close(service.release)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, l, lim, service, time.Millisecond) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answered := make(chan error, 1)
	go func() {
		_, err := testpb.NewTestServiceClient(conn).EmptyCall(t.Context(), &testpb.Empty{})
		answered <- err
	}()
	<-service.called
	stop()
	err = <-ended
	if _, cut := errors.AsType[*spillway.DrainError](err); !cut || !errors.Is(err, context.DeadlineExceeded) {
		t.Error("stop:", err)
	}
	if err := <-answered; status.Code(err) != codes.Unavailable {
		t.Error("the call that hangs:", err)
	}
}
