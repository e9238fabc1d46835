package main

import (
	"context"
	"errors"
	"slices"
	"sync"
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
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	errs := make([]error, 200)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			errs[i] = g.Do(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil })
		})
	}
	all.Wait()
	if !slices.ContainsFunc(errs, func(err error) bool { return errors.Is(err, spillway.ErrRejected) }) {
		t.Error("it refused nothing")
	}
}
