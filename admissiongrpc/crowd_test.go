package admissiongrpc

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// Streams and calls whose clients leave, and whose handlers panic, fail, or send and
// receive at once, in every mode: no slot is lost.
func TestEverySlotComesBackFromACrowdOfStreams(t *testing.T) {
	lim := must(limiter.New(limiter.Config{Law: limit.NewFixed(3), QueueSize: 5}))
	handle := func(ss grpc.ServerStream) error {
		kind := rand.IntN(6)
		var sends sync.WaitGroup
		defer sends.Wait()
		sends.Go(func() { _ = ss.SendMsg(&response{}) }) // concurrent with the code below
		switch err := ss.RecvMsg(&request{}); {
		case err != nil:
			return err
		case kind == 0:
			panic("a bug")
		case kind == 1:
			return &spillway.Rejection{Reason: spillway.ReasonQueueFull}
		case kind == 2:
			<-ss.Context().Done()
			return ss.Context().Err()
		}
		return ss.RecvMsg(&request{})
	}
	conn := connect(t, Config{
		Limiter: lim, Short: func(string) bool { return rand.IntN(2) == 0 },
		Deadlines: map[spillway.Priority]time.Duration{spillway.Normal: 20 * time.Millisecond},
	}, &service{stream: handle, unary: func(ctx context.Context) error {
		if rand.IntN(3) == 0 {
			panic("a bug")
		}
		<-ctx.Done()
		return ctx.Err()
	}})
	client := testpb.NewTestServiceClient(conn)
	var crowd sync.WaitGroup
	for c := range 16 {
		crowd.Go(func() {
			for i := range 30 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(20))*time.Millisecond)
				switch c % 4 {
				case 0:
					lim.SetMode(limiter.Mode(i % 3))
					_, _ = client.EmptyCall(ctx, &testpb.Empty{})
				case 1:
					_, _ = client.EmptyCall(ctx, &testpb.Empty{})
				default:
					if ss, err := client.FullDuplexCall(ctx); err == nil {
						if i%5 > 0 {
							_ = ss.Send(&request{})
						}
						if i%2 == 0 {
							_ = ss.CloseSend()
						}
						for err == nil {
							_, err = ss.Recv()
						}
					}
				}
				cancel()
				runtime.Gosched()
			}
		})
	}
	crowd.Wait()
	check(t, lim.Drain(t.Context()))
	s := lim.Stats()
	if s.InFlight != 0 || s.LongInFlight != 0 || s.Queued != 0 || s.Admitted != s.Completed || s.Offered != s.Admitted+s.Rejected+s.Cancelled {
		t.Errorf("%+v", s)
	}
}
