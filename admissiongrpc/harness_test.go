package admissiongrpc

import (
	"context"
	"fmt"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// service runs one function for each unary call, and one for each stream.
type service struct {
	testpb.UnimplementedTestServiceServer
	unary  func(ctx context.Context) error
	stream func(s grpc.ServerStream) error
}

func (s *service) EmptyCall(ctx context.Context, _ *testpb.Empty) (*testpb.Empty, error) {
	if s.unary == nil {
		return &testpb.Empty{}, nil
	}
	return &testpb.Empty{}, s.unary(ctx)
}

func (s *service) UnaryCall(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	return &testpb.SimpleResponse{}, s.unary(ctx)
}

func (s *service) StreamingOutputCall(_ *testpb.StreamingOutputCallRequest, ss grpc.ServerStreamingServer[testpb.StreamingOutputCallResponse]) error {
	return s.stream(ss)
}

func (s *service) StreamingInputCall(ss grpc.ClientStreamingServer[testpb.StreamingInputCallRequest, testpb.StreamingInputCallResponse]) error {
	return s.stream(ss)
}

func (s *service) FullDuplexCall(ss grpc.BidiStreamingServer[testpb.StreamingOutputCallRequest, testpb.StreamingOutputCallResponse]) error {
	return s.stream(ss)
}

func recovered(err *error) {
	if v := recover(); v != nil {
		*err = status.Error(codes.Internal, fmt.Sprint("recovered ", v))
	}
}

func recoverUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (_ any, err error) {
	defer recovered(&err)
	return handler(ctx, req)
}

func recoverStream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	defer recovered(&err)
	return handler(srv, ss)
}

// connect serves s behind the interceptors of cfg and returns a connection to it.
func connect(t testing.TB, cfg Config, s *service, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	i := must(New(cfg))
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(recoverUnary, i.UnaryServerInterceptor),
		grpc.ChainStreamInterceptor(recoverStream, i.StreamServerInterceptor),
	)
	testpb.RegisterTestServiceServer(server, s)
	healthpb.RegisterHealthServer(server, health.NewServer())
	listener := bufconn.Listen(1 << 16)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	opts = append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	conn := must(grpc.NewClient("passthrough:///bufconn", opts...))
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return conn
}

// fixed returns a limiter with n slots in which no call waits.
func fixed(t testing.TB, n int) *limiter.Limiter {
	t.Helper()
	lim := must(limiter.New(limiter.Config{Law: limit.NewFixed(n), QueueSize: -1}))
	return lim
}

// hold takes a slot until release is called.
func hold(t testing.TB, lim *limiter.Limiter) (release func()) {
	t.Helper()
	permit := must(lim.Acquire(context.Background()))
	return permit.Release
}

// do makes a unary call and returns its error and trailer.
func do(ctx context.Context, conn *grpc.ClientConn) (metadata.MD, error) {
	var trailer metadata.MD
	_, err := testpb.NewTestServiceClient(conn).EmptyCall(ctx, &testpb.Empty{}, grpc.Trailer(&trailer))
	return trailer, err
}

// must returns v, and panics if there is an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// check ends the test if there is an error.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// rest reads the rest of a stream, and returns what ended it.
func rest[T any](ss interface{ Recv() (*T, error) }) (err error) {
	for err == nil {
		_, err = ss.Recv()
	}
	return err
}
