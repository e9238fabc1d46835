package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	plan "github.com/spillway-go/spillway/lab/overload"
)

func TestFailsafeAdmitsAndRefusesLikeTheOthers(t *testing.T) {
	g, err := newGuard(plan.Failsafe, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	broken := errors.New("tried and failed")
	for range 5 {
		running := 0
		if err := g.Do(t.Context(), func(context.Context) error { running = g.Running(); return broken }); !errors.Is(err, broken) || running != 1 {
			t.Errorf("%v, %d running", err, running)
		}
	}
	if g.Running() != 0 || g.Waiting() != 0 || g.Limit() < 1 {
		t.Errorf("at rest %d running, %d waiting, limit %d", g.Running(), g.Waiting(), g.Limit())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // until the first refusal, however late the goroutines begin
	defer cancel()
	var refused atomic.Bool
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			if errors.Is(g.Do(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }), spillway.ErrRejected) {
				refused.Store(true)
				cancel()
			}
		})
	}
	all.Wait()
	if !refused.Load() {
		t.Error("it refused nothing")
	}
}
