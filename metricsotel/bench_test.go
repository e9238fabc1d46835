package metricsotel

import (
	"context"
	"testing"

	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/workerpool"
)

// The cost of recording a request, in addition to its limiter.
func BenchmarkObserver(b *testing.B) {
	meter, _ := bench(b)
	observer := observerOf(b, meter, "a")
	b.ReportAllocs()
	for b.Loop() {
		observer.Admitted(0, 1000)
		observer.Ended(limiter.End{Kind: "GET /", Took: 1000})
	}
}

func TestRecordingAllocNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	meter, _ := bench(t)
	observer := observerOf(t, meter, "a")
	times := timed(t, meter, "a")
	end := workerpool.Result{Context: context.Background(), Started: true, Ran: 1000}
	if n := testing.AllocsPerRun(100, func() {
		observer.Admitted(0, 1000)
		observer.Ended(limiter.End{Kind: "GET /", Took: 1000})
		times(end)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
