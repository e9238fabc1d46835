package admissiongrpc

import (
	"context"
	"io"
	"sync"
	"testing"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// Forty clients wait for a lock, in unary calls as those of etcd. They once held forty slots, and
// the other calls were refused.
func TestCallsThatWaitForALockStopNobody(t *testing.T) {
	lim, err := limiter.New(limiter.Config{Law: limit.NewFixed(2)})
	if err != nil {
		t.Fatal(err)
	}
	unlock := make(chan struct{})
	lock := func(method string) bool { return method == testpb.TestService_UnaryCall_FullMethodName }
	answered := 0
	conn := connect(t, Config{Limiter: lim, Long: lock}, &service{unary: func(ctx context.Context) error {
		if method, _ := grpc.Method(ctx); lock(method) {
			<-unlock
		} else {
			answered++
		}
		return nil
	}})
	client := testpb.NewTestServiceClient(conn)
	var waiting sync.WaitGroup
	for range 40 {
		waiting.Go(func() {
			if _, err := client.UnaryCall(t.Context(), &testpb.SimpleRequest{}); err != nil {
				t.Error(err)
			}
		})
	}
	await.True(t, "forty calls wait for the lock", func() bool { return lim.Stats().LongInFlight == 40 })
	for range 174 {
		if _, err := do(t.Context(), conn); err != nil {
			t.Fatal(err)
		}
	}
	inFlight(t, lim, 0, 40)
	if s := lim.Stats(); answered != 174 || s.Rejected != 0 {
		t.Errorf("%d calls were answered, and %d refused", answered, s.Rejected)
	}
	drained := make(chan error)
	go func() { drained <- lim.Drain(t.Context()) }()
	await.True(t, "the limiter drains", func() bool { return !lim.Open() })
	close(unlock)
	waiting.Wait()
	if err := await.Receive(t, "the limiter has drained", drained); err != nil {
		t.Error(err)
	}
}

// The first event of a subscription may take an hour. The subscription once held a slot until then.
func TestASubscriptionWithoutEventsHoldsNoSlot(t *testing.T) {
	lim := fixed(t, 1)
	step := newSteps()
	conn := connect(t, Config{Limiter: lim, Long: func(m string) bool { return m == testpb.TestService_StreamingOutputCall_FullMethodName }}, &service{
		stream: func(grpc.ServerStream) error {
			step.here()
			return nil
		},
	})
	ss, err := testpb.NewTestServiceClient(conn).StreamingOutputCall(t.Context(), &request{})
	if err != nil {
		t.Fatal(err)
	}
	step.wait()
	inFlight(t, lim, 0, 1)
	if _, err := do(t.Context(), conn); err != nil {
		t.Error(err)
	}
	step.proceed()
	if _, err := ss.Recv(); err != io.EOF {
		t.Error(err)
	}
}
