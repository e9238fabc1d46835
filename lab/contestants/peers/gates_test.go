package peers

import (
	"context"
	"errors"
	"net/http"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/platinummonkey/go-concurrency-limits/core"
	limitlaws "github.com/platinummonkey/go-concurrency-limits/limit"
	limits "github.com/platinummonkey/go-concurrency-limits/limiter"
	"github.com/platinummonkey/go-concurrency-limits/strategy"
	"golang.org/x/sync/semaphore"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// gate is a library that says whether work may run, with some slots. What it cannot do
// is nil.
type gate struct {
	acquire func(ctx context.Context) (release func(), err error) // waits for a slot
	try     func() (release func(), err error)                    // does not
	do      func(work func() error) error                         // acquires, runs and releases
	handler func(http.Handler) http.Handler
}

// guard makes gates of so many slots, all of which are there from the beginning.
type guard struct {
	name string
	open func(slots int) gate
}

var errBusy = errors.New("busy") // for libraries that answer with a bool

var guards = []guard{
	{"limiter", func(slots int) gate {
		lim := must(limiter.New(limiter.Config{Law: limit.NewFixed(slots)}))
		return gate{
			acquire: func(ctx context.Context) (func(), error) {
				p, err := lim.Acquire(ctx)
				return p.Release, err
			},
			try: func() (func(), error) {
				p, err := lim.TryAcquire(none)
				return p.Release, err
			},
			do: func(work func() error) error {
				return lim.Do(none, func(context.Context) error { return work() })
			},
			handler: func(h http.Handler) http.Handler {
				at := must(limiter.New(limiter.Config{Law: limit.NewFixed(slots), QueueSize: -1})) // refuses at once, as the others do
				return must(admissionhttp.New(admissionhttp.Config{Limiter: at}))(h)
			},
		}
	}},
	{"x/sync/semaphore", func(slots int) gate {
		sem := semaphore.NewWeighted(int64(slots))
		release := func() { sem.Release(1) }
		return gate{
			acquire: func(ctx context.Context) (func(), error) { return release, sem.Acquire(ctx, 1) },
			try: func() (func(), error) {
				if !sem.TryAcquire(1) {
					return nil, errBusy
				}
				return release, nil
			},
		}
	}},
	{"failsafe-go bulkhead", func(slots int) gate {
		b := bulkhead.New[*http.Response](uint(slots))
		return gate{
			acquire: func(ctx context.Context) (func(), error) { return b.ReleasePermit, b.AcquirePermit(ctx) },
			try: func() (func(), error) {
				if !b.TryAcquirePermit() {
					return nil, bulkhead.ErrFull
				}
				return b.ReleasePermit, nil
			},
			do:      failsafe.With[*http.Response](b).Run,
			handler: func(h http.Handler) http.Handler { return failsafehttp.NewHandler(h, b) },
		}
	}},
	{"failsafe-go adaptive limiter", func(slots int) gate {
		n := uint(slots)
		a := adaptivelimiter.NewBuilder[*http.Response]().WithLimits(n, n, n).Build()
		return gate{
			acquire: func(ctx context.Context) (func(), error) {
				p, err := a.AcquirePermit(ctx)
				if err != nil {
					return nil, err
				}
				return p.Record, nil
			},
			try: func() (func(), error) {
				p, ok := a.TryAcquirePermit()
				if !ok {
					return nil, adaptivelimiter.ErrExceeded
				}
				return p.Record, nil
			},
			do:      failsafe.With[*http.Response](a).Run,
			handler: func(h http.Handler) http.Handler { return failsafehttp.NewHandler(h, a) },
		}
	}},
	{"go-concurrency-limits", func(slots int) gate {
		lim := must(limits.NewDefaultLimiter(limitlaws.NewFixedLimit("slots", slots, core.EmptyMetricRegistryInstance),
			1e9, 1e9, 1e5, 10, strategy.NewSimpleStrategy(slots), limitlaws.NoopLimitLogger{}, core.EmptyMetricRegistryInstance))
		blocking := limits.NewBlockingLimiter(lim, 0, limitlaws.NoopLimitLogger{})
		from := func(ctx context.Context, l core.Limiter) (func(), error) {
			listener, ok := l.Acquire(ctx)
			if !ok {
				return nil, errBusy
			}
			return listener.OnSuccess, nil
		}
		return gate{
			acquire: func(ctx context.Context) (func(), error) { return from(ctx, blocking) },
			try:     func() (func(), error) { return from(none, lim) },
		}
	}},
}
