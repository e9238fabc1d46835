// Command grpc shows admission in front of the methods of a gRPC server.
//
//	go run ./grpc
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissiongrpc"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/limiter"
)

func main() {
	addr := flag.String("addr", "localhost:8080", "where to listen; port 0 picks a free one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *addr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, addr string) error {
	mode, err := admissionhttp.ModeFromEnv()
	if err != nil {
		return err
	}
	lim, err := limiter.New(limiter.Config{Name: "grpc", Mode: mode})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println("grpc on", l.Addr())
	return Run(ctx, l, lim)
}

// Run serves until ctx ends, then finishes what was admitted: the health service says
// NOT_SERVING, the limiter drains, and the server stops. A service behind a load
// balancer waits between the first two until that has noticed.
func Run(ctx context.Context, l net.Listener, lim *limiter.Limiter) error {
	return run(ctx, l, lim, orders{}, 20*time.Second)
}

// run stops within patience, also when a handler does not end.
func run(ctx context.Context, l net.Listener, lim *limiter.Limiter, service testpb.TestServiceServer, patience time.Duration) error {
	admission, err := admissiongrpc.New(admissiongrpc.Config{
		Limiter: lim,
		Priority: func(ctx context.Context, method string) spillway.Priority {
			if method == testpb.TestService_UnaryCall_FullMethodName { // such as placing an order
				return spillway.Critical
			}
			return spillway.PriorityFrom(ctx)
		},
	})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(recovered, admission.UnaryServerInterceptor),
		grpc.ChainStreamInterceptor(recoveredStream, admission.StreamServerInterceptor),
	)
	up := health.NewServer() // exempt from admission
	healthpb.RegisterHealthServer(server, up)
	testpb.RegisterTestServiceServer(server, service)

	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	up.Shutdown()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return errors.Join(lim.Drain(stopping), shutdown(stopping, server))
}

// shutdown stops server within ctx. Stop closes the connections, which ends the
// contexts of the handlers, but GracefulStop waits for the handlers themselves, and a
// Stop that finds it waiting waits with it. So shutdown waits for neither once ctx is
// done: a handler that ignores its context would hold it for ever.
func shutdown(ctx context.Context, server *grpc.Server) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.GracefulStop()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		go server.Stop()
		return ctx.Err()
	}
}

// recovered answers a panic. It comes before admission, which gives the slot back and
// lets the panic go on.
func recovered(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
	defer func() {
		if v := recover(); v != nil {
			resp, err = nil, status.Error(codes.Internal, "internal error")
		}
	}()
	return next(ctx, req)
}

func recoveredStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = status.Error(codes.Internal, "internal error")
		}
	}()
	return next(srv, stream)
}

// orders stands for a service of yours: gRPC's own test service, so that no generated
// code is in the way.
type orders struct {
	testpb.UnimplementedTestServiceServer
}

func (orders) EmptyCall(context.Context, *testpb.Empty) (*testpb.Empty, error) {
	return &testpb.Empty{}, nil
}

// UnaryCall panics when it is asked for an answer that is too long.
func (orders) UnaryCall(_ context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	if req.GetResponseSize() > 0 {
		panic("no database")
	}
	return &testpb.SimpleResponse{}, nil
}

// StreamingOutputCall panics before its first message.
func (orders) StreamingOutputCall(*testpb.StreamingOutputCallRequest, grpc.ServerStreamingServer[testpb.StreamingOutputCallResponse]) error {
	panic("no database")
}
