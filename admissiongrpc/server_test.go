package admissiongrpc

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// wreck panics, aborts or ends its goroutine, in turn. A goroutine that ends sends no answer, so
// the caller leaves.
func wreck(n int, leave context.CancelFunc) {
	switch n % 3 {
	case 0:
		panic("wrecked")
	case 1:
		var none *limiter.Limiter
		none.Limit() // a runtime panic
	case 2:
		leave()
		runtime.Goexit()
	}
}

// After 300 handlers that did not return, 50 calls are answered and no slot is missing.
func TestSlotsComeBackFromHandlersThatDoNotReturn(t *testing.T) {
	n, wrecks := 0, true
	var leave context.CancelFunc
	body := func() {
		if wrecks {
			wreck(n, leave)
		}
	}
	s := &service{
		unary: func(context.Context) error { body(); return nil },
		stream: func(ss grpc.ServerStream) error {
			if err := ss.RecvMsg(&testpb.StreamingOutputCallRequest{}); err != nil {
				return err
			}
			if n%2 == 0 { // half of the streams end after becoming long
				if err := ss.SendMsg(&testpb.StreamingOutputCallResponse{}); err != nil {
					return err
				}
			}
			body()
			return nil
		},
	}
	lim := must(limiter.New(limiter.Config{Law: limit.NewFixed(2)}))
	conn := connect(t, Config{Limiter: lim}, s)
	unary := func(ctx context.Context) error { _, err := do(ctx, conn); return err }
	stream := func(ctx context.Context) error {
		ss, err := testpb.NewTestServiceClient(conn).FullDuplexCall(ctx)
		if err == nil {
			err = ss.Send(&request{})
		}
		if err == nil {
			err = rest(ss)
		}
		if err == io.EOF {
			return nil
		}
		return err
	}
	for name, do := range map[string]func(context.Context) error{"unary": unary, "stream": stream} {
		wrecks = true
		for n = range 300 {
			ctx, cancel := context.WithCancel(t.Context())
			leave = cancel
			if err := do(ctx); err == nil {
				t.Fatalf("%s: call %d was answered", name, n)
			}
			cancel()
			for s := lim.Stats(); s.InFlight+s.LongInFlight > 0; s = lim.Stats() {
				runtime.Gosched() // a caller that left does not wait for the handler
			}
		}
		wrecks = false
		for n = range 50 {
			if err := do(t.Context()); err != nil {
				t.Fatalf("%s: good call %d: %v", name, n, err)
			}
		}
	}
	if err := lim.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestHealthIsNeverRefused(t *testing.T) {
	lim := fixed(t, 1)
	lim.Close()
	exempt := func(m string) bool { return strings.HasSuffix(m, "/UnaryCall") }
	conn := connect(t, Config{Limiter: lim, Exempt: exempt}, &service{unary: func(context.Context) error { return nil }})
	check := healthpb.NewHealthClient(conn)
	resp, err := check.Check(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil || resp.Status != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("%v %v", resp, err)
	}
	watch := must(check.Watch(t.Context(), &healthpb.HealthCheckRequest{}))
	if _, err := watch.Recv(); err != nil {
		t.Error(err)
	}
	if _, err := testpb.NewTestServiceClient(conn).UnaryCall(t.Context(), &testpb.SimpleRequest{}); err != nil {
		t.Error(err)
	}
	if _, err := do(t.Context(), conn); status.Code(err) != codes.Unavailable {
		t.Errorf("another method: %v", err)
	}
	if s := lim.Stats(); s.Offered != 1 {
		t.Errorf("%d calls were counted", s.Offered)
	}
}

func TestDeadlinesOnlyShrink(t *testing.T) {
	var end time.Time
	var has bool
	note := func(ctx context.Context) error { end, has = ctx.Deadline(); return nil }
	s := &service{unary: note, stream: func(ss grpc.ServerStream) error { return note(ss.Context()) }}
	short := func(m string) bool { return strings.HasSuffix(m, "/StreamingInputCall") }
	conn := connect(t, Config{Deadlines: map[spillway.Priority]time.Duration{spillway.Normal: time.Hour}, Short: short}, s)
	client := testpb.NewTestServiceClient(conn)
	for _, c := range []struct{ timeout, most time.Duration }{{0, time.Hour}, {10 * time.Hour, time.Hour}, {time.Minute, time.Minute}} {
		ctx, cancel := t.Context(), context.CancelFunc(func() {})
		if c.timeout > 0 {
			ctx, cancel = context.WithTimeout(ctx, c.timeout)
		}
		must(do(ctx, conn))
		cancel()
		if !has || end.After(time.Now().Add(c.most)) {
			t.Errorf("a call with %v has %v left", c.timeout, time.Until(end))
		}
	}
	in := must(client.StreamingInputCall(t.Context()))
	_, _ = in.CloseAndRecv() // the handler sends no answer
	if !has {
		t.Error("a short stream has no deadline")
	}
	both := must(client.FullDuplexCall(t.Context()))
	_, _ = both.Recv()
	if has {
		t.Error("a stream has a deadline that its caller did not set")
	}
}

// With an entry for Normal alone, calls of other priorities had no deadline.
func TestAPriorityWithoutAnEntryHasTheNearestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := must(New(Config{Deadlines: map[spillway.Priority]time.Duration{spillway.Low: 9 * time.Second, spillway.High: time.Second, spillway.Critical: 0}}))
		for p, want := range map[spillway.Priority]time.Duration{
			-100: 9 * time.Second, spillway.Low: 9 * time.Second, spillway.Normal: time.Second, spillway.High: time.Second, spillway.Critical: time.Hour, 100: time.Hour,
		} {
			ctx, cancel := context.WithTimeout(spillway.WithPriority(t.Context(), p), time.Hour)
			defer cancel()
			c, done := i.newCall(ctx, "/s/m", true)
			defer done()
			if end, _ := c.wait.Deadline(); time.Until(end) != want {
				t.Errorf("%v has %v, want %v", p, time.Until(end), want)
			}
		}
	})
	all := complete(map[spillway.Priority]time.Duration{spillway.Low: 9, spillway.High: 1})
	if all[spillway.Normal] != 1 || all[spillway.Critical] != 1 {
		t.Errorf("of two that are equally near: %v", all)
	}
}

// A call that waits until the server's own deadline is refused, because its caller's deadline has
// not passed. The caller was told wait_too_long while the limiter counted a caller that had left.
func TestAWaitToTheServersDeadlineIsARefusal(t *testing.T) {
	lim := must(limiter.New(limiter.Config{Law: limit.NewFixed(1)}))
	defer hold(t, lim)()
	conn := connect(t, Config{Limiter: lim, Deadlines: map[spillway.Priority]time.Duration{spillway.Normal: time.Millisecond}}, &service{})
	trailer, err := do(t.Context(), conn)
	if told := single(trailer.Get(ReasonKey)); status.Code(err) != codes.Unavailable || told != spillway.ReasonDeadlineTooClose.String() {
		t.Errorf("%v %v", err, trailer)
	}
	if s := lim.Stats(); s.RejectedBy[spillway.ReasonDeadlineTooClose] != 1 || s.Rejected != 1 || s.Cancelled != 0 {
		t.Errorf("%v rejected, %d cancelled", s.RejectedBy, s.Cancelled)
	}
}

func TestEachMethodHasALimiterOfItsOwn(t *testing.T) {
	keyed := must(limiter.NewKeyed(limiter.KeyedConfig{New: func(key string) limiter.Config {
		if strings.HasSuffix(key, "/FullDuplexCall") {
			return limiter.Config{MaxWait: -1} // a mistake
		}
		return limiter.Config{Law: limit.NewFixed(1), QueueSize: -1}
	}}))
	s := &service{
		unary:  func(context.Context) error { return nil },
		stream: func(ss grpc.ServerStream) error { return ss.SendMsg(&testpb.StreamingOutputCallResponse{}) },
	}
	conn := connect(t, Config{Keyed: keyed}, s)
	permit := must(keyed.Acquire(t.Context(), testpb.TestService_EmptyCall_FullMethodName))
	defer permit.Release()
	if _, err := do(t.Context(), conn); status.Code(err) != codes.Unavailable {
		t.Error(err)
	}
	client := testpb.NewTestServiceClient(conn)
	if _, err := client.UnaryCall(t.Context(), &testpb.SimpleRequest{}); err != nil {
		t.Error(err)
	}
	ss := must(client.FullDuplexCall(t.Context()))
	if _, err := ss.Recv(); status.Code(err) != codes.Internal || strings.Contains(err.Error(), "MaxWait") {
		t.Errorf("a mistake of the configuration: %v", err)
	}
	must(keyed.Get("/s/m"))
	conn = connect(t, Config{Keyed: keyed, Class: func(string) string { return testpb.TestService_EmptyCall_FullMethodName }}, s)
	if _, err := testpb.NewTestServiceClient(conn).UnaryCall(t.Context(), &testpb.SimpleRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("a method of the same class: %v", err)
	}
}

func TestADryRunRefusesNothing(t *testing.T) {
	t.Setenv(modeVariable, "dryrun")
	i, err := New(Config{})
	if err != nil || i.cfg.Limiter.Mode() != limiter.DryRun {
		t.Fatal(err)
	}
	lim := fixed(t, 1)
	lim.SetMode(limiter.DryRun)
	defer hold(t, lim)()
	conn := connect(t, Config{Limiter: lim}, &service{})
	for range 10 {
		must(do(t.Context(), conn))
	}
	if s := lim.Stats(); s.Admitted != 11 {
		t.Errorf("%d admitted", s.Admitted)
	}

	// Neither mode shortens a deadline or refuses a call without time left.
	tight := Config{Limiter: lim, Deadlines: map[spillway.Priority]time.Duration{spillway.Normal: time.Millisecond}}
	for _, mode := range []limiter.Mode{limiter.DryRun, limiter.Off} {
		lim.SetMode(mode)
		conn = connect(t, tight, &service{unary: func(ctx context.Context) error { return ctx.Err() }})
		if _, err := do(t.Context(), conn); err != nil {
			t.Errorf("%v: %v", mode, err)
		}
	}
}

func TestNewNamesAllThatIsWrong(t *testing.T) {
	t.Setenv(modeVariable, "perhaps")
	class := func(string) string { return "" }
	_, err := New(Config{Class: class, Deadlines: map[spillway.Priority]time.Duration{9: 1, spillway.Low: -1, spillway.High: 2000}, ClientTimeout: 30})
	for _, text := range []string{"Class", "priority(9)", "low", "high has 2µs: the least is 1ms, and a plain number counts nanoseconds (write 2*time.Second)", "ClientTimeout is 30ns", modeVariable} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s is not named: %v", text, err)
		}
	}
	keyed, _ := limiter.NewKeyed(limiter.KeyedConfig{})
	if _, err := New(Config{Limiter: fixed(t, 1), Keyed: keyed}); err == nil {
		t.Error("a Limiter and a Keyed were accepted")
	}
	if _, err := New(Config{Limiter: fixed(t, 1)}); err != nil {
		t.Errorf("the mode of a limiter that is given: %v", err)
	}
}

func TestTheErrorOfAHandlerStaysAsItIs(t *testing.T) {
	i := must(New(Config{}))
	own := errors.New("no such patient")
	resp, err := i.UnaryServerInterceptor(t.Context(), 1, &grpc.UnaryServerInfo{FullMethod: "/s/m"}, func(context.Context, any) (any, error) { return 2, own })
	if resp != 2 || err != own {
		t.Errorf("%v %v", resp, err)
	}
}
