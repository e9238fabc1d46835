package admissiongrpc

import (
	"context"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/spillway-go/spillway"
)

// The keys of metadata that callers send, as Config.Trusted says. The deadline travels in gRPC's
// own grpc-timeout.
const (
	priorityKey = "spillway-priority"
	costKey     = "spillway-cost"
)

// said is the priority and cost in the metadata of a call.
type said struct {
	priority    spillway.Priority
	hasPriority bool
	cost        int // 0: none
}

func readMetadata(ctx context.Context) (s said) {
	if v := single(metadata.ValueFromIncomingContext(ctx, priorityKey)); v != "" {
		s.hasPriority = s.priority.UnmarshalText([]byte(v)) == nil
	}
	s.cost = parseCost(single(metadata.ValueFromIncomingContext(ctx, costKey)))
	return s
}

// single returns the value of a key that has one value. Of several values, one may be set by the
// trusted caller and another only passed on.
func single(values []string) string {
	if len(values) != 1 {
		return ""
	}
	return values[0]
}

// parseCost returns the cost in text, or 0 if text is no cost: digits alone, from 1 to the
// limiter's maximum.
func parseCost(text string) int {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0
	}
	return int(n)
}

// UnaryClientInterceptor passes the priority and the cost of the context on to the server, for
// grpc.WithChainUnaryInterceptor. Both are taken from the context alone: other values in outgoing
// metadata are replaced or removed, so that a proxy that copies metadata passes on nothing that a
// caller made up.
func UnaryClientInterceptor(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return invoker(outgoing(ctx), method, req, reply, cc, opts...)
}

// StreamClientInterceptor is UnaryClientInterceptor for streams, for
// grpc.WithChainStreamInterceptor.
func StreamClientInterceptor(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return streamer(outgoing(ctx), desc, cc, method, opts...)
}

// outgoing returns ctx with the metadata for its priority and cost. Normal and a cost of one are a
// server's defaults, and are not sent.
func outgoing(ctx context.Context) context.Context {
	md, _ := metadata.FromOutgoingContext(ctx) // a copy
	p, cost := spillway.PriorityFrom(ctx), spillway.CostFrom(ctx)
	hasPriority := p != spillway.Normal && p >= spillway.Low && p <= spillway.Critical
	if !hasPriority && cost <= 1 && md[priorityKey] == nil && md[costKey] == nil {
		return ctx
	}
	if md == nil {
		md = metadata.MD{}
	}
	delete(md, priorityKey)
	delete(md, costKey)
	if hasPriority {
		md.Set(priorityKey, p.String())
	}
	if cost > 1 {
		md.Set(costKey, strconv.Itoa(cost))
	}
	return metadata.NewOutgoingContext(ctx, md)
}
