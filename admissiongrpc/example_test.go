package admissiongrpc_test

import (
	"context"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissiongrpc"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// patients is a service. Its first call panics.
type patients struct {
	testpb.UnimplementedTestServiceServer
	broken bool
}

func (p *patients) EmptyCall(ctx context.Context, _ *testpb.Empty) (*testpb.Empty, error) {
	if p.broken {
		p.broken = false
		panic("no database")
	}
	fmt.Println("serving, priority", spillway.PriorityFrom(ctx))
	return &testpb.Empty{}, nil
}

// recovery answers a panic. It comes before admission, which frees the slot and lets the panic
// propagate.
func recovery(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	defer func() {
		if v := recover(); v != nil {
			resp, err = nil, status.Error(codes.Internal, "internal error")
		}
	}()
	return handler(ctx, req)
}

// A server with one slot: a panic costs no slot, and a call without a free slot is refused.
func Example() {
	// With the zero limiter.Config, the limiter finds the limit itself.
	lim, err := limiter.New(limiter.Config{Name: "patients", Law: limit.NewFixed(1), QueueSize: -1})
	if err != nil {
		fmt.Println(err)
		return
	}
	admission, err := admissiongrpc.New(admissiongrpc.Config{
		Limiter: lim,
		Trusted: func(ctx context.Context) bool { // such as callers with a certificate of this service
			from, ok := peer.FromContext(ctx)
			return ok && from.Addr.Network() == "bufconn"
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(recovery, admission.UnaryServerInterceptor),
		grpc.ChainStreamInterceptor(admission.StreamServerInterceptor),
	)
	testpb.RegisterTestServiceServer(server, &patients{broken: true})
	listener := bufconn.Listen(1 << 16)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	conn, err := grpc.NewClient("passthrough:///patients",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainUnaryInterceptor(admissiongrpc.UnaryClientInterceptor),
		grpc.WithChainStreamInterceptor(admissiongrpc.StreamClientInterceptor),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close() }()
	client := testpb.NewTestServiceClient(conn)
	ctx := spillway.WithPriority(context.Background(), spillway.High)

	_, err = client.EmptyCall(ctx, &testpb.Empty{})
	fmt.Println(status.Code(err))

	permit, _ := lim.Acquire(ctx) // other work takes the slot
	var trailer metadata.MD
	_, err = client.EmptyCall(ctx, &testpb.Empty{}, grpc.Trailer(&trailer))
	fmt.Println(status.Code(err), trailer.Get(admissiongrpc.ReasonKey))
	permit.Release()

	_, err = client.EmptyCall(ctx, &testpb.Empty{})
	fmt.Println(status.Code(err))
	// Output:
	// Internal
	// Unavailable [queue_full]
	// serving, priority high
	// OK
}

// locks is a service in which a unary call waits for a lock.
type locks struct {
	testpb.UnimplementedTestServiceServer
	waits, unlock chan struct{}
}

func (l *locks) UnaryCall(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	l.waits <- struct{}{}
	<-l.unlock
	return &testpb.SimpleResponse{}, nil
}

func (l *locks) EmptyCall(context.Context, *testpb.Empty) (*testpb.Empty, error) {
	return &testpb.Empty{}, nil
}

// Calls that mostly wait are named by Long. They hold no slot: here there is one, and twenty callers
// wait for a lock.
func ExampleConfig_long() {
	lim, err := limiter.New(limiter.Config{Law: limit.NewFixed(1)})
	if err != nil {
		fmt.Println(err)
		return
	}
	admission, err := admissiongrpc.New(admissiongrpc.Config{
		Limiter: lim,
		Long:    func(method string) bool { return method == testpb.TestService_UnaryCall_FullMethodName },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(admission.UnaryServerInterceptor))
	service := &locks{waits: make(chan struct{}), unlock: make(chan struct{})}
	testpb.RegisterTestServiceServer(server, service)
	listener := bufconn.Listen(1 << 16)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	conn, err := grpc.NewClient("passthrough:///locks",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close() }()
	client := testpb.NewTestServiceClient(conn)
	ctx := context.Background()

	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() { _, _ = client.UnaryCall(ctx, &testpb.SimpleRequest{}) })
		<-service.waits
	}
	_, err = client.EmptyCall(ctx, &testpb.Empty{})
	fmt.Println(status.Code(err), "beside", lim.Stats().LongInFlight, "that wait")
	close(service.unlock)
	callers.Wait()
	// Output: OK beside 20 that wait
}

// A handler that uses a limiter itself answers with Refuse.
func ExampleRefuse() {
	database, err := limiter.New(limiter.Config{Law: limit.NewFixed(1)})
	if err != nil {
		fmt.Println(err)
		return
	}
	database.Close()
	read := func(ctx context.Context) error {
		err := database.Do(ctx, func(context.Context) error { return nil })
		return admissiongrpc.Refuse(ctx, err)
	}
	fmt.Println(read(context.Background()))
	// Output: rpc error: code = Unavailable desc = refused: closed
}
