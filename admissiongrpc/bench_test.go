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
	i, err := New(Config{Limiter: fixed(t, 10)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, info := t.Context(), &grpc.UnaryServerInfo{FullMethod: "/s/m"}
	if n := testing.AllocsPerRun(1000, func() { _, _ = i.UnaryServerInterceptor(ctx, nil, info, answer1) }); n != 1 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAdmitted(b *testing.B) {
	lim, err := limiter.New(limiter.Config{Law: limit.NewFixed(10)})
	if err != nil {
		b.Fatal(err)
	}
	benchmark(b, b.Context(), lim)
}

func BenchmarkAdmittedWithPriority(b *testing.B) {
	lim, err := limiter.New(limiter.Config{Law: limit.NewFixed(10)})
	if err != nil {
		b.Fatal(err)
	}
	benchmark(b, spillway.WithPriority(b.Context(), spillway.High), lim)
}

func BenchmarkRefused(b *testing.B) {
	lim := fixed(b, 1)
	defer hold(b, lim)()
	benchmark(b, b.Context(), lim)
}

func benchmark(b *testing.B, ctx context.Context, lim *limiter.Limiter) {
	i, err := New(Config{Limiter: lim})
	if err != nil {
		b.Fatal(err)
	}
	info := &grpc.UnaryServerInfo{FullMethod: "/s/m"}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = i.UnaryServerInterceptor(ctx, nil, info, answer1)
	}
}
