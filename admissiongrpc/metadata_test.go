package admissiongrpc

import (
	"context"
	"math"
	"strconv"
	"testing"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/spillway-go/spillway"
)

func TestMetadataIsReadFromTrustedCallersOnly(t *testing.T) {
	type found struct {
		priority spillway.Priority
		slots    int
	}
	for name, c := range map[string]struct {
		metadata []string
		trusted  bool
		want     found
	}{
		"nothing":                   {nil, true, found{spillway.Low, 2}},
		"both":                      {[]string{priorityKey, "critical", costKey, "5"}, true, found{spillway.Critical, 5}},
		"normal":                    {[]string{priorityKey, "Normal"}, true, found{spillway.Normal, 2}},
		"forged":                    {[]string{priorityKey, "critical", costKey, "5"}, false, found{spillway.Low, 2}},
		"unknown":                   {[]string{priorityKey, "9", costKey, "five"}, true, found{spillway.Low, 2}},
		"a cost of nothing":         {[]string{costKey, "0"}, true, found{spillway.Low, 2}},
		"a cost below nothing":      {[]string{costKey, "-5"}, true, found{spillway.Low, 2}},
		"two that differ":           {[]string{priorityKey, "low", priorityKey, "critical"}, true, found{spillway.Low, 2}},
		"passed on and added to it": {[]string{costKey, "1", costKey, "9"}, true, found{spillway.Low, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			lim := fixed(t, 10)
			var got found
			conn := connect(t, Config{
				Limiter:  lim,
				Priority: func(context.Context, string) spillway.Priority { return spillway.Low },
				Cost:     func(context.Context, string) int { return 2 },
				Trusted:  func(context.Context) bool { return c.trusted },
			}, &service{unary: func(ctx context.Context) error {
				got.priority = spillway.PriorityFrom(ctx)
				got.slots = lim.Limit()
				for { // take the remaining slots
					permit, err := lim.TryAcquire(ctx)
					if err != nil {
						return nil
					}
					got.slots--
					defer permit.Release()
				}
			}})
			must(do(metadata.AppendToOutgoingContext(t.Context(), c.metadata...), conn))
			if got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func TestAClientPassesItsContextOn(t *testing.T) {
	var got metadata.MD
	note := func(ctx context.Context) { got, _ = metadata.FromIncomingContext(ctx) }
	s := &service{
		unary:  func(ctx context.Context) error { note(ctx); return nil },
		stream: func(ss grpc.ServerStream) error { note(ss.Context()); return nil },
	}
	conn := connect(t, Config{}, s,
		grpc.WithChainUnaryInterceptor(UnaryClientInterceptor), grpc.WithChainStreamInterceptor(StreamClientInterceptor))
	unary := func(ctx context.Context) {
		must(do(ctx, conn))
	}
	stream := func(ctx context.Context) {
		ss := must(testpb.NewTestServiceClient(conn).FullDuplexCall(ctx))
		_, _ = ss.Recv()
	}
	forged := metadata.AppendToOutgoingContext(t.Context(), priorityKey, "critical", costKey, "99", "other", "stays")
	high := spillway.WithCost(spillway.WithPriority(forged, spillway.High), 3)
	for name, c := range map[string]struct {
		ctx                   context.Context
		priority, cost, other string
	}{
		"nothing to say":            {t.Context(), "", "", ""},
		"its own":                   {spillway.WithPriority(t.Context(), spillway.Low), "low", "", ""},
		"a proxy removes":           {forged, "", "", "stays"},
		"a proxy replaces":          {high, "high", "3", "stays"},
		"normal is what is assumed": {spillway.WithCost(spillway.WithPriority(t.Context(), spillway.Normal), 1), "", "", ""},
		"no such priority":          {spillway.WithPriority(t.Context(), 77), "", "", ""},
	} {
		for _, send := range []func(context.Context){unary, stream} {
			send(c.ctx)
			for key, want := range map[string]string{priorityKey: c.priority, costKey: c.cost, "other": c.other} {
				if v := got.Get(key); len(v) > 1 || single(v) != want {
					t.Errorf("%s: %s is %q, want %q", name, key, v, want)
				}
			}
		}
	}
}

func FuzzMetadata(f *testing.F) {
	f.Add("critical", "5", false)
	f.Add("LOW", "0", true)
	f.Add("", "2147483647", false)
	f.Add("priority(7)", "2147483648", false)
	f.Add("\x00normal", "+1", true)
	f.Fuzz(func(t *testing.T, priority, cost string, twice bool) {
		md := metadata.MD{priorityKey: {priority}, costKey: {cost}}
		if twice {
			md.Append(priorityKey, priority)
			md.Append(costKey, cost)
		}
		s := readMetadata(metadata.NewIncomingContext(t.Context(), md))
		if twice && s != (said{}) {
			t.Errorf("two values said %+v", s)
		}
		if s.priority < spillway.Low || s.priority > spillway.Critical || s.cost < 0 || s.cost > math.MaxInt32 {
			t.Errorf("%+v", s)
		}
		var want spillway.Priority
		if err := want.UnmarshalText([]byte(priority)); !twice && (err == nil) != s.hasPriority || s.hasPriority && s.priority != want {
			t.Errorf("%q is %v", priority, s.priority)
		}
		for _, r := range cost {
			if (r < '0' || r > '9') && s.cost != 0 {
				t.Errorf("%q is a cost of %d", cost, s.cost)
			}
		}

		// A server reads the metadata that a client sends.
		ctx := spillway.WithCost(spillway.WithPriority(t.Context(), s.priority), s.cost)
		sent, _ := metadata.FromOutgoingContext(outgoing(ctx))
		back := readMetadata(metadata.NewIncomingContext(t.Context(), sent))
		if back.priority != s.priority || max(back.cost, 1) != max(s.cost, 1) {
			t.Errorf("%+v became %+v by %v", s, back, sent)
		}
		if sent[costKey] != nil && sent[costKey][0] != strconv.Itoa(s.cost) {
			t.Errorf("sent %v", sent)
		}
	})
}
