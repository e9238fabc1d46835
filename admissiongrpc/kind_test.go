package admissiongrpc

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// classes is a law that records the class of the latest work.
type classes struct {
	limit.Law
	latest uint8
}

func (c *classes) Admit(_ time.Duration, load limit.Load) { c.latest = load.Class }

func TestTheKindOfACallIsItsMethod(t *testing.T) {
	law := &classes{Law: limit.NewFixed(1)}
	lim := must(limiter.New(limiter.Config{Law: law}))
	i := must(New(Config{Limiter: lim}))
	of := func(ctx context.Context, method string) uint8 {
		must(i.UnaryServerInterceptor(ctx, nil, &grpc.UnaryServerInfo{FullMethod: method}, func(context.Context, any) (any, error) { return nil, nil }))
		return law.latest
	}
	ctx := t.Context()
	get, list := of(ctx, "/shop.Orders/Get"), of(ctx, "/shop.Orders/List")
	if get == list || of(ctx, "/shop.Orders/Get") != get {
		t.Errorf("methods are of kinds %d and %d", get, list)
	}
	imports := spillway.WithKind(ctx, "import")
	if told := of(imports, "/shop.Orders/Get"); told == get || of(imports, "/shop.Orders/List") != told {
		t.Error("what the context says is not heard")
	}
	stream := &received{ctx: ctx}
	err := i.StreamServerInterceptor(nil, stream, &grpc.StreamServerInfo{FullMethod: "/shop.Orders/List"}, func(_ any, s grpc.ServerStream) error { return s.RecvMsg(nil) })
	if err != nil || law.latest != list {
		t.Errorf("a stream of the method List is of kind %d, want %d: %v", law.latest, list, err)
	}
}

// received is a stream whose first message has arrived.
type received struct {
	grpc.ServerStream
	ctx context.Context
}

func (r *received) Context() context.Context { return r.ctx }
func (r *received) RecvMsg(any) error        { return nil }
