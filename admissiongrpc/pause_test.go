package admissiongrpc

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
)

// A client that does not read, and one that sends nothing, once held the slot of a Short stream.
func TestAClientThatTakesItsTimeHoldsNoSlot(t *testing.T) {
	for name, handler := range map[string]func(grpc.ServerStream) error{
		"does not read": sendForever,
		"sends nothing": func(ss grpc.ServerStream) error {
			return errors.Join(ss.RecvMsg(&request{}), ss.RecvMsg(&request{}))
		},
		"sends nothing after an answer": func(ss grpc.ServerStream) error {
			return errors.Join(ss.RecvMsg(&request{}), ss.SendMsg(&response{}), ss.RecvMsg(&request{}))
		},
		"does not read while another goroutine receives": func(ss grpc.ServerStream) error {
			go func() { _ = ss.RecvMsg(&request{}) }()
			return sendForever(ss)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lim := fixed(t, 1)
				conn := connect(t, Config{Limiter: lim, Short: always}, &service{stream: handler})
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				ss := must(testpb.NewTestServiceClient(conn).FullDuplexCall(ctx))
				check(t, ss.Send(&request{}))
				time.Sleep(time.Second)
				for range 174 {
					must(do(t.Context(), conn))
				}
				if s := lim.Stats(); s.Paused != 1 || s.InFlight != 0 {
					t.Errorf("%d paused and %d in flight", s.Paused, s.InFlight)
				}
				leave()
				synctest.Wait()
				inFlight(t, lim, 0, 0)
				if s := lim.Stats(); s.Paused != 0 || s.Completed != 175 {
					t.Errorf("%d paused and %d completed", s.Paused, s.Completed)
				}
			})
		})
	}
}

// A handler that works while a goroutine of its own receives keeps its slot.
func TestAHandlerThatReceivesAsideKeepsItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := fixed(t, 1)
		conn := connect(t, Config{Limiter: lim, Short: always}, &service{stream: func(ss grpc.ServerStream) error {
			if err := ss.RecvMsg(&request{}); err != nil {
				return err
			}
			go func() { _ = ss.RecvMsg(&request{}) }()
			synctest.Wait()
			if err := ss.SendMsg(&response{}); err != nil {
				return err
			}
			time.Sleep(time.Minute) // work
			return nil
		}})
		ss := must(testpb.NewTestServiceClient(conn).FullDuplexCall(t.Context()))
		check(t, ss.Send(&request{}))
		time.Sleep(time.Second)
		if _, err := do(t.Context(), conn); status.Code(err) != codes.Unavailable {
			t.Errorf("the slot of a handler that works was given away: %v", err)
		}
		if err := rest(ss); err != io.EOF {
			t.Error(err)
		}
	})
}
