package limiter

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limit"
)

func TestNumbersAsLargeAsPossibleAreTaken(t *testing.T) {
	gauge := func() []Signal { return []Signal{Gauge("g", func() float64 { return math.MaxFloat64 }, 1)} }
	for _, c := range []struct {
		cfg  Config
		more func(l *Limiter) error
	}{
		{Config{QueueSize: math.MaxInt, MaxWait: math.MaxInt64, LeakAfter: math.MaxInt64}, nil},
		{Config{Law: limit.NewFixed(math.MaxInt)}, nil},
		{Config{Law: limit.NewFixed(math.MaxInt), Signals: gauge()}, nil},
		{Config{Law: limit.NewFixed(math.MaxInt), SlowStart: math.MaxInt64}, nil},
		{Config{Law: limit.NewFixed(math.MaxInt), Mode: DryRun}, nil},
		{Config{SlowStart: time.Second, QueueSize: math.MaxInt}, func(l *Limiter) error { return l.SetBounds(math.MaxInt, math.MaxInt) }},
		{Config{Mode: DryRun}, func(l *Limiter) error { return l.SetBounds(0, math.MaxInt) }},
		{Config{}, func(l *Limiter) error { l.SetLease(math.MaxInt, time.Unix(1<<40, 0), "all there is"); return nil }},
	} {
		synctest.Test(t, func(t *testing.T) {
			name := fmt.Sprintf("%+v", c.cfg)
			l := configured(t, c.cfg)
			if c.more != nil {
				if err := c.more(l); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for i := range 60 {
				p, err := l.AcquireWith(ctx, Request{Cost: 1 + i%3})
				if err != nil {
					t.Fatalf("%s: %d: %v", name, i, err)
				}
				time.Sleep(50 * time.Millisecond)
				if s := l.Stats(); s.Limit < 1 || s.InFlight != 1+i%3 || s.Demand < 0 {
					t.Fatalf("%s: %+v", name, s)
				}
				p.Done(nil)
			}
			l.SetMode(DryRun)
			l.SetMode(Enforce)
			if err := l.Drain(ctx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			atRest(t, l)
		})
	}
	k := keyedBy(t, KeyedConfig{MaxKeys: math.MaxInt})
	p, err := k.Acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	p.Done(nil)
}
