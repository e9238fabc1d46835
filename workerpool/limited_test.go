package workerpool

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// quitter is a law that now and then ends the goroutine that calls it.
type quitter struct{ r *rand.Rand }

func (q *quitter) quit() {
	if q.r.IntN(8) == 0 {
		runtime.Goexit()
	}
}

func (q *quitter) Limit() int                       { return 2 }
func (q *quitter) Admit(time.Duration, limit.Load)  { q.quit() }
func (q *quitter) Observe(limit.Sample, limit.Load) { q.quit() }

// The jobs of a pool use a limiter whose law ends goroutines, workers among them. Pool and limiter go on.
func TestJobsUnderALimiterWhoseLawEndsGoroutines(t *testing.T) {
	// Nobody is refused for a long wait, which a busy machine may cause.
	l, err := limiter.New(limiter.Config{Law: &quitter{rand.New(rand.NewPCG(1, 2))}, MaxWait: limiter.NoMaxWait})
	if err != nil {
		t.Fatal(err)
	}
	var ran atomic.Int64
	p, err := New(Config{MaxWorkers: 6})
	if err != nil {
		t.Fatal(err)
	}
	const jobs = 500
	for range jobs {
		if err := p.Submit(t.Context(), func(ctx context.Context) error {
			return l.Do(ctx, func(context.Context) error { ran.Add(1); runtime.Gosched(); return nil })
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if s := p.Stats(); s.Completed != jobs || s.Failed == 0 || ran.Load() < jobs/2 {
		t.Errorf("%d ran, %+v", ran.Load(), s)
	}
	if s := l.Stats(); s.InFlight != 0 || s.Queued != 0 || s.Offered != jobs || s.Offered != s.Admitted+s.Cancelled || s.Admitted != s.Completed {
		t.Errorf("%+v", s)
	}
}
