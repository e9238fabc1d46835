package admissiongrpc

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/spillway-go/spillway/limiter"
)

// large is more than what gRPC takes of a stream whose client does not read.
var large = &response{Payload: &testpb.Payload{Body: make([]byte, 1<<18)}}

func always(string) bool { return true }

// sendForever sends until the client has left or the stream is cut off.
func sendForever(ss grpc.ServerStream) error {
	for {
		if err := ss.SendMsg(large); err != nil {
			return err
		}
	}
}

// A client that lives and does not read once kept its handler and its slot for ever.
func TestAClientThatDoesNotReadIsCutOff(t *testing.T) {
	dry := fixed(t, 1)
	dry.SetMode(limiter.DryRun)
	for name, c := range map[string]struct {
		cfg  Config
		want time.Duration // until the stream is cut off; zero: never
	}{
		"short":                   {Config{Short: always}, time.Minute},
		"short, with a timeout":   {Config{Short: always, ClientTimeout: time.Hour}, time.Hour},
		"short, without a bound":  {Config{Short: always, ClientTimeout: -1}, 0},
		"long":                    {Config{}, 0},
		"long, with a timeout":    {Config{ClientTimeout: time.Hour}, time.Hour},
		"short, in a dry run":     {Config{Short: always, Limiter: dry}, 0},
		"long from the beginning": {Config{Short: always, Long: always, ClientTimeout: time.Hour}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan time.Duration, 1)
				if c.cfg.Limiter == nil {
					c.cfg.Limiter = fixed(t, 1)
				}
				conn := connect(t, c.cfg, &service{stream: func(ss grpc.ServerStream) error {
					began := time.Now()
					err := sendForever(ss)
					ended <- time.Since(began)
					return err
				}})
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				ss := must(testpb.NewTestServiceClient(conn).StreamingOutputCall(ctx, &request{}))
				time.Sleep(24 * time.Hour)
				synctest.Wait()
				select {
				case took := <-ended:
					if took != c.want {
						t.Errorf("cut off after %v, want %v", took, c.want)
					}
				default:
					if c.want > 0 {
						t.Error("the handler still waits")
					}
					return
				}
				inFlight(t, c.cfg.Limiter, 0, 0)
				err := rest(ss) // the client reads what was sent, and why there is no more
				if status.Code(err) != codes.DeadlineExceeded {
					t.Error(err)
				}
			})
		})
	}
}

// A client that sends nothing once held its handler for ever, and after its first message the slot of a
// Short stream.
func TestAClientThatSendsNothingIsCutOff(t *testing.T) {
	for messages := range 3 {
		synctest.Test(t, func(t *testing.T) {
			lim := fixed(t, 1)
			ended := make(chan time.Duration, 1)
			conn := connect(t, Config{Limiter: lim, Short: always}, &service{stream: func(ss grpc.ServerStream) (err error) {
				began := time.Now()
				for err == nil {
					err = ss.RecvMsg(&testpb.StreamingInputCallRequest{})
				}
				ended <- time.Since(began)
				return err
			}})
			ss := must(testpb.NewTestServiceClient(conn).StreamingInputCall(t.Context()))
			for range messages { // a client that is slow is no client that stalls
				time.Sleep(usualTimeout - time.Second)
				check(t, ss.Send(&testpb.StreamingInputCallRequest{}))
			}
			if err := ss.RecvMsg(&testpb.StreamingInputCallResponse{}); status.Code(err) != codes.DeadlineExceeded {
				t.Error(err)
			}
			if took, want := <-ended, usualTimeout+time.Duration(messages)*(usualTimeout-time.Second); took != want {
				t.Errorf("cut off after %v, want %v", took, want)
			}
			synctest.Wait()
			inFlight(t, lim, 0, 0)
		})
	}
}

// A handler may receive in a goroutine of its own until its client has finished, and work and send
// meanwhile. Its client, which waits for the answers, is not cut off.
func TestAHandlerThatReceivesAsideIsNotCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := fixed(t, 1)
		conn := connect(t, Config{Limiter: lim, Short: always}, &service{stream: func(ss grpc.ServerStream) error {
			if err := ss.RecvMsg(&request{}); err != nil {
				return err
			}
			finished := make(chan error, 1)
			go func() { finished <- ss.RecvMsg(&request{}) }()
			for range 3 {
				if err := ss.SendMsg(&response{}); err != nil {
					return err
				}
				time.Sleep(usualTimeout - time.Second)
			}
			if err := ss.SendMsg(large); err != nil {
				return err
			}
			if err := <-finished; err != io.EOF {
				return err
			}
			return nil
		}})
		ss := must(testpb.NewTestServiceClient(conn).FullDuplexCall(t.Context()))
		check(t, ss.Send(&request{}))
		for range 4 {
			must(ss.Recv())
		}
		time.Sleep(time.Hour) // the client has all that it asked for, and may ask for more
		check(t, ss.CloseSend())
		if _, err := ss.Recv(); err != io.EOF {
			t.Error(err)
		}
	})
}
