package overload

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
)

var errTried = errors.New("tried and failed")

func TestEveryContestantLetsWorkThroughAndReturnsItsError(t *testing.T) {
	for _, name := range slices.DeleteFunc(Names(), func(name string) bool { return name == Failsafe }) {
		g, err := NewGuard(name, 2)
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			running := 0
			err := g.Do(t.Context(), func(context.Context) error {
				running = g.Running()
				return errTried
			})
			if !errors.Is(err, errTried) || running != 1 {
				t.Errorf("%s: %v, %d running", name, err, running)
			}
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_ = g.Do(gone, func(ctx context.Context) error { return ctx.Err() })
		if g.Running() != 0 || g.Waiting() != 0 {
			t.Errorf("%s: at rest %d running and %d waiting", name, g.Running(), g.Waiting())
		}
		if name != None && g.Limit() < 1 {
			t.Errorf("%s: limit %d", name, g.Limit())
		}
		g.Close()
	}
	if _, err := NewGuard("magic", 2); err == nil {
		t.Error("an unknown contestant was made")
	}
}

// flood sends n pieces of work that end together, and returns their errors.
func flood(t *testing.T, g *Guard, n int, patience time.Duration) []error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			errs[i] = g.Do(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				return nil
			})
		})
	}
	all.Wait()
	return errs
}

func TestRefusalsAreTheSameForAll(t *testing.T) {
	for _, name := range []string{SemaphoreTry, WorkerPool} {
		g, err := NewGuard(name, 1)
		if err != nil {
			t.Fatal(err)
		}
		refused := slices.ContainsFunc(flood(t, g, 200, 50*time.Millisecond), func(err error) bool { return errors.Is(err, spillway.ErrRejected) })
		if !refused {
			t.Errorf("%s refused nothing", name)
		}
		g.Close()
	}
}
