//go:build soak

package oncall

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/lab/internal/labtest/browser"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// backend works on some things at once, each for about took; further work waits in
// it, or if it thrashes makes everything slower.
type backend struct {
	slots    chan struct{}
	took     time.Duration
	thrashes bool
	inside   atomic.Int64
}

func (b *backend) work(ctx context.Context) error {
	crowd := float64(b.inside.Add(1))
	defer b.inside.Add(-1)
	took := float64(b.took) * (0.7 + 0.6*rand.Float64())
	if b.thrashes {
		took *= 1 + crowd*crowd/100
	} else {
		select {
		case b.slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		defer func() { <-b.slots }()
	}
	select {
	case <-time.After(time.Duration(took)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// load sends arrivals of all priorities to a limiter until the test ends.
func load(t *testing.T, lim *limiter.Limiter, b *backend, every time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	t.Cleanup(cancel)
	all.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			time.Sleep(time.Duration(rand.ExpFloat64() * float64(every)))
			p := []spillway.Priority{spillway.Normal, spillway.Low, spillway.Normal, spillway.Critical, spillway.High}[n%5]
			kind := []string{"GET /orders", "GET /orders/{id}", "POST /orders", "GET /customers/{id}/orders", "GET /stock"}[rand.IntN(5)]
			all.Go(func() {
				ctx, cancel := context.WithTimeout(spillway.WithKind(spillway.WithPriority(ctx, p), kind), time.Second)
				defer cancel()
				_ = lim.Do(ctx, func(ctx context.Context) error {
					if kind == "POST /orders" && n%3 == 0 {
						return errors.New("failed")
					}
					return b.work(ctx)
				})
			})
		}
	})
}

// Passing means that the page was open on each device while limiters under load refused
// and leaked. It takes pictures to look at, if SPILLWAY_SHOTS
// names their folder.
func TestSoakPicturesOfThePageUnderLoad(t *testing.T) {
	orders := newLimiter(t, limiter.Config{Name: "orders"})
	search := newLimiter(t, limiter.Config{Name: "search", Mode: limiter.DryRun})
	export := newLimiter(t, limiter.Config{Name: "export", Law: limit.NewFixed(4), LeakAfter: time.Second})
	load(t, orders, &backend{slots: make(chan struct{}, 8), took: 40 * time.Millisecond}, 2*time.Millisecond)
	load(t, search, &backend{thrashes: true, took: 40 * time.Millisecond}, 2500*time.Microsecond)
	load(t, export, &backend{slots: make(chan struct{}, 4), took: 300 * time.Millisecond}, 200*time.Millisecond)
	if _, err := export.Acquire(t.Context()); err != nil { // never ended: a leak
		t.Fatal(err)
	}
	page := admissionhttp.DebugHandler(orders, search, export)
	for _, d := range []struct {
		name string
		browser.Device
		wait time.Duration
	}{
		{"desktop-light", browser.Device{Width: 1280}, 45 * time.Second},
		{"desktop-dark", browser.Device{Width: 1280, Dark: true}, 3 * time.Second},
		{"phone-dark", browser.Device{Width: 360, Dark: true}, 3 * time.Second},
		{"phone-light", browser.Device{Width: 360}, 3 * time.Second},
		{"phone-large-text", browser.Device{Width: 360, FontSize: 32}, 3 * time.Second},
		{"desktop-large-text", browser.Device{Width: 1280, FontSize: 32}, 3 * time.Second},
		{"no-script", browser.Device{Width: 800, NoScript: true}, 0},
	} {
		b := open(t, page, d.Device)
		time.Sleep(d.wait)
		b.Shot(d.name)
	}
}
