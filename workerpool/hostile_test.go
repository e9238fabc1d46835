package workerpool

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// A queue of math.MaxInt once had no room at all. Where an int has 32 bits, neither had the queue
// of half a billion workers. An idle pool then ran nothing.
func TestNumbersAsLargeAsPossibleAreTaken(t *testing.T) {
	for _, cfg := range []Config{
		{QueueSize: math.MaxInt},
		{MaxWorkers: 2, QueueSize: math.MaxInt},
		{QueueSize: math.MaxInt - 1, Law: limit.NewFixed(2)},
		{QueueSize: math.MaxInt, Law: limit.NewFixed(math.MaxInt)},
		{MaxWorkers: 500_000_000},
		{MaxWorkers: math.MaxInt32},
		{MaxWorkers: math.MaxInt32, QueueSize: math.MaxInt},
		{MinWorkers: math.MaxInt32},
		{MinWorkers: math.MaxInt32, GrowAt: 1e-9, GrowCooldown: 1},
		{MinWorkers: 3, MaxWorkers: math.MaxInt32, QueueSize: math.MaxInt, GrowAt: 1, GrowCooldown: math.MaxInt64},
		{MaxWorkers: 1, QueueSize: 1, MaxWait: math.MaxInt64, IdleTimeout: math.MaxInt64},
	} {
		synctest.Test(t, func(t *testing.T) {
			name := fmt.Sprintf("%+v", cfg)
			p := pool(t, cfg)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for i := range 200 {
				submit := p.Submit
				if i%2 == 0 && cfg.QueueSize != 1 {
					submit = p.TrySubmit
				}
				if err := submit(ctx, sleep(10*time.Millisecond)); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if i%10 == 0 {
					time.Sleep(60 * time.Millisecond)
				}
			}
			if err := p.Resize(math.MaxInt32, math.MaxInt32); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := Do(ctx, p, func(context.Context) (int, error) { return 0, nil }); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := p.Drain(ctx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if s := p.Stats(); s.Completed != 201 {
				t.Errorf("%s: %d of 201 jobs ran", name, s.Completed)
			}
			atRest(t, p)
		})
	}
}

// A prediction for many long jobs once overflowed a time. The wait was below zero, and the pool
// accepted work that could only be late.
func TestAWaitIsAtMostTheLongestTime(t *testing.T) {
	c := &control{}
	c.cost.Store(math.MaxInt64 / 2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if got := c.hopeless(ctx, 3); got != spillway.ReasonDeadlineTooClose {
		t.Errorf("%v: three jobs of 146 years are ahead of one that has an hour", got)
	}
	for x, want := range map[float64]time.Duration{0: 0, 1e9: time.Second, 1e19: math.MaxInt64, math.Inf(1): math.MaxInt64} {
		if got := span(x); got != want {
			t.Errorf("%v ns are %v", x, got)
		}
	}
}

// A nil job was once accepted, and ended the process on a worker.
func TestASubmissionOfNoJobIsAnError(t *testing.T) {
	p := pool(t, Config{MaxWorkers: 1})
	_, do := Do[int](t.Context(), p, nil)
	for name, err := range map[string]error{
		"Submit": p.Submit(t.Context(), nil), "TrySubmit": p.TrySubmit(t.Context(), nil), "Do": do,
	} {
		if err == nil || err.Error() != "workerpool: the job is nil" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s := p.Stats(); s.Offered != 0 {
		t.Errorf("%+v", s)
	}
}

func TestAPoolThatNewDidNotMakeSaysSo(t *testing.T) {
	_, err := New(Config{MaxWorkers: -1})
	for name, use := range map[string]func(p *Pool){
		"Submit":    func(p *Pool) { _ = p.Submit(t.Context(), nothing) },
		"TrySubmit": func(p *Pool) { _ = p.TrySubmit(t.Context(), nothing) },
		"Do":        func(p *Pool) { _, _ = Do(t.Context(), p, func(context.Context) (int, error) { return 0, nil }) },
		"Stats":     func(p *Pool) { p.Stats() },
		"Resize":    func(p *Pool) { _ = p.Resize(1, 1) },
		"Limit":     func(p *Pool) { p.Limit() },
		"Drain":     func(p *Pool) { _ = p.Drain(t.Context()) },
		"Close":     func(p *Pool) { p.Close() },
	} {
		zero := new(Pool)
		for _, p := range []*Pool{nil, zero, zero} { // the second time, too
			if got, _ := outcomeOf(func() { use(p) }); got != notMade {
				t.Errorf("%s of %v (%v): %v", name, p, err, got)
			}
		}
	}
}

// Jobs that submit to their own pool may wait for room that only they could make. Such jobs once
// waited forever, and State did not report it.
func TestTheStateNamesJobsThatWaitForTheirOwnPool(t *testing.T) {
	inner := map[string]func(ctx context.Context, p *Pool) error{
		"Submit": func(ctx context.Context, p *Pool) error {
			for range 9 {
				if err := p.Submit(ctx, nothing); err != nil {
					return err
				}
			}
			return nil
		},
		"Do": func(ctx context.Context, p *Pool) error {
			_, err := Do(ctx, p, func(context.Context) (int, error) { return 0, nil })
			return err
		},
	}
	for name, job := range inner {
		for _, cfg := range []Config{{MaxWorkers: 2, QueueSize: 2}, {Law: limit.NewFixed(2), QueueSize: 2}} {
			synctest.Test(t, func(t *testing.T) {
				p := pool(t, cfg)
				ctx, cancel := context.WithCancel(t.Context())
				if _, err := Do(ctx, p, func(context.Context) (int, error) { time.Sleep(2 * time.Second); return 0, nil }); err != nil {
					t.Fatal(err)
				}
				if s := p.Stats().State; strings.Contains(s, "nothing has ended") {
					t.Errorf("%s: one job of two seconds has run: %s", name, s)
				}
				time.Sleep(time.Hour)
				for range 2 {
					if err := p.Submit(ctx, func(ctx context.Context) error { time.Sleep(time.Second); return job(ctx, p) }); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				if s := p.Stats().State; strings.Contains(s, "nothing has ended") {
					t.Errorf("%s: jobs have begun just now: %s", name, s)
				}
				time.Sleep(10 * time.Second)
				if s := p.Stats(); s.InFlight != 2 || !strings.Contains(s.State, "nothing has ended for 10s with 2 in flight") || !strings.Contains(s.State, "TrySubmit") {
					t.Errorf("%s: %+v", name, s)
				}
				cancel()
				synctest.Wait()
				if s := p.Stats(); s.InFlight != 0 || strings.Contains(s.State, "nothing has ended") {
					t.Errorf("%s: %+v", name, s)
				}
				p.Close()
				synctest.Wait()
				atRest(t, p)
			})
		}
	}
}
