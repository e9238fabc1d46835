package admissiongrpc

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// Forty clients wait for a lock, in unary calls as those of etcd. They once held forty slots, and
// the other calls were refused.
func TestCallsThatWaitForALockStopNobody(t *testing.T) {
	lim := must(limiter.New(limiter.Config{Law: limit.NewFixed(2)}))
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
		must(do(t.Context(), conn))
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

// Two interceptors with one limiter once took two slots for one call: first streams, later unary calls only.
func TestACallIsAdmittedOnce(t *testing.T) {
	one := must(limiter.NewKeyed(limiter.KeyedConfig{New: func(string) limiter.Config { return limiter.Config{Law: limit.NewFixed(1), QueueSize: -1} }}))
	lim := fixed(t, 1)
	byService := func(string) string { return "service" }
	const method = "/s/m"
	asStream := func(i *Interceptor, ctx context.Context, next func(context.Context) error) error {
		return i.StreamServerInterceptor(nil, quiet{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: method}, func(_ any, ss grpc.ServerStream) error {
			if err := ss.RecvMsg(nil); err != nil {
				return err
			}
			return next(ss.Context())
		})
	}
	asUnary := func(i *Interceptor, ctx context.Context, next func(context.Context) error) error {
		_, err := i.UnaryServerInterceptor(ctx, nil, &grpc.UnaryServerInfo{FullMethod: method}, func(ctx context.Context, _ any) (any, error) { return nil, next(ctx) })
		return err
	}
	for name, c := range map[string]struct {
		chain   []Config
		refused bool
	}{
		"one limiter":          {chain: []Config{{Limiter: lim}, {Limiter: lim}}},
		"another between":      {chain: []Config{{Limiter: lim}, {Limiter: fixed(t, 1)}, {Limiter: lim}}},
		"one class":            {chain: []Config{{Keyed: one}, {Keyed: one}}},
		"others":               {chain: []Config{{Limiter: lim}, {Keyed: one}, {Keyed: one, Class: byService}}},
		"one that is full":     {chain: []Config{{Limiter: lim}, {Limiter: full(t)}}, refused: true},
		"a class that differs": {chain: []Config{{Keyed: one}, {Keyed: one, Class: byService}}},
	} {
		for kind, ask := range map[string]func(*Interceptor, context.Context, func(context.Context) error) error{"stream": asStream, "unary": asUnary} {
			t.Run(name+", "+kind, func(t *testing.T) {
				handler := func(context.Context) error { return nil }
				for _, cfg := range slices.Backward(c.chain) {
					next := handler
					admission := must(New(cfg))
					handler = func(ctx context.Context) error { return ask(admission, ctx, next) }
				}
				err := handler(t.Context())
				if _, refused := errors.AsType[*spillway.Rejection](err); refused != c.refused || !refused && err != nil {
					t.Error(err)
				}
				inFlight(t, lim, 0, 0)
			})
		}
	}
}

// A goroutine that outlives its handler holds no slot.
func TestASlotThatWasGivenBackIsAskedForAgain(t *testing.T) {
	lim := fixed(t, 1)
	i := must(New(Config{Limiter: lim}))
	info := &grpc.UnaryServerInfo{FullMethod: "/s/m"}
	var left context.Context
	keep := func(ctx context.Context, _ any) (any, error) {
		left = ctx
		inFlight(t, lim, 1, 0)
		return nil, nil
	}
	for range 2 {
		if _, err := i.UnaryServerInterceptor(cmp.Or(left, t.Context()), nil, info, keep); err != nil {
			t.Error(err)
		}
	}
	if s := lim.Stats(); s.Offered != 2 {
		t.Errorf("%d offered", s.Offered)
	}
}

// full returns a limiter without a free slot.
func full(t *testing.T) *limiter.Limiter {
	lim := fixed(t, 1)
	t.Cleanup(hold(t, lim))
	return lim
}
