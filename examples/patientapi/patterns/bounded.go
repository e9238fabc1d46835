package patterns

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/metrics"
	"github.com/spillway-go/spillway/metricsprom"
	"github.com/spillway-go/spillway/workerpool"
)

// none is how the library's configurations write 0: their 0 is a default.
func none(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// pooled runs work on the workers of a pool.
type pooled struct{ pool *workerpool.Pool }

func newPooled(name string, cfg Config) (*pooled, error) {
	wait := cfg.QueueWait
	if wait == 0 {
		wait = -1 // at once
	}
	panics := newPanicLog(cfg.Logger)
	pool, err := workerpool.New(workerpool.Config{
		Name: name, MaxWorkers: cfg.Workers, QueueSize: none(cfg.QueueSize), MaxWait: wait,
		OnDone: func(res workerpool.Result) {
			if p, ok := errors.AsType[*spillway.PanicError](res.Err); ok {
				panics.add(p.Value, p.Stack)
			}
		},
	})
	return &pooled{pool}, err
}

func (p *pooled) do(ctx context.Context, fn work) (any, error) {
	return workerpool.Do(ctx, p.pool, fn)
}

func (p *pooled) drain(ctx context.Context) error { return p.pool.Drain(ctx) }

func (p *pooled) stats(s *Stats) {
	st := p.pool.Stats()
	s.Offered, s.Admitted, s.Completed = st.Offered, st.Completed+uint64(st.InFlight), st.Completed
	s.Rejected, s.Cancelled = st.Rejected+st.Dropped, st.Cancelled
	s.InFlight, s.Queued = st.InFlight, st.Queued+st.Blocked
	s.QueueWait, s.Service = st.QueueWait, st.Service
	reasons(s, st.RejectedBy)
	if st.Dropped > 0 {
		s.Reasons["dropped"] = st.Dropped
	}
}

func (p *pooled) collector() prometheus.Collector { return metricsprom.New(metrics.Pool(p.pool)) }

// limited runs work on the caller's goroutine, once a limiter has admitted it.
type limited struct{ lim *limiter.Limiter }

func newLimited(cfg Config) (*limited, error) {
	lim, err := limiter.New(limiter.Config{
		Name: Limiter, Law: limit.NewFixed(cfg.Workers), QueueSize: none(cfg.QueueSize), Mode: cfg.Mode, Signals: cfg.Signals,
	})
	return &limited{lim}, err
}

func (l *limited) do(ctx context.Context, fn work) (any, error) {
	permit, err := l.lim.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer permit.Release()
	made, err := fn(ctx)
	permit.Done(err)
	return made, err
}

func (l *limited) limiter() *limiter.Limiter { return l.lim }

func (l *limited) drain(ctx context.Context) error { return l.lim.Drain(ctx) }

func (l *limited) stats(s *Stats) {
	st := l.lim.Stats()
	s.Offered, s.Admitted, s.Completed = st.Offered, st.Admitted, st.Completed
	s.Rejected, s.Cancelled = st.Rejected, st.Cancelled
	s.InFlight, s.Queued = st.InFlight, st.Queued
	s.QueueWait, s.Service = st.QueueWait, st.Service
	reasons(s, st.RejectedBy)
}

func (l *limited) collector() prometheus.Collector { return metricsprom.New(metrics.Limiter(l.lim)) }

// admitted runs work on the caller's goroutine. It has passed the limiter already.
type admitted struct{ limited }

func newAdmitted(cfg Config) (*admitted, error) {
	lim, err := limiter.New(limiter.Config{Name: Adaptive, Mode: cfg.Mode, SlowStart: cfg.SlowStart, Signals: cfg.Signals})
	return &admitted{limited{lim}}, err
}

func (a *admitted) do(ctx context.Context, fn work) (any, error) { return fn(ctx) }

func reasons(s *Stats, by map[spillway.Reason]uint64) {
	for reason, n := range by {
		s.Reasons[reason.String()] = n
	}
}
