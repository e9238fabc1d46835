package admissiongrpc

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

func answer1(context.Context, any) (any, error) { return nil, nil }

// An admitted call costs one allocation, by which interceptors inside know that it was admitted.
func TestAllocsOfACall(t *testing.T) {
	i := must(New(Config{Limiter: fixed(t, 10)}))
	ctx, info := t.Context(), &grpc.UnaryServerInfo{FullMethod: "/s/m"}
	if n := testing.AllocsPerRun(1000, func() { _, _ = i.UnaryServerInterceptor(ctx, nil, info, answer1) }); n != 1 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAdmitted(b *testing.B) {
	lim := must(limiter.New(limiter.Config{Law: limit.NewFixed(10)}))
	benchmark(b, b.Context(), lim)
}

func BenchmarkAdmittedWithPriority(b *testing.B) {
	lim := must(limiter.New(limiter.Config{Law: limit.NewFixed(10)}))
	benchmark(b, spillway.WithPriority(b.Context(), spillway.High), lim)
}

func BenchmarkRefused(b *testing.B) {
	lim := fixed(b, 1)
	defer hold(b, lim)()
	benchmark(b, b.Context(), lim)
}

func benchmark(b *testing.B, ctx context.Context, lim *limiter.Limiter) {
	i := must(New(Config{Limiter: lim}))
	info := &grpc.UnaryServerInfo{FullMethod: "/s/m"}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = i.UnaryServerInterceptor(ctx, nil, info, answer1)
	}
}
