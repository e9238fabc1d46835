package overload

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
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

// refuses sends n pieces of work that last until one of them is refused, however late they
// begin on a busy machine, and reports whether one was.
func refuses(t *testing.T, g *Guard, n int) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var refused atomic.Bool
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			err := g.Do(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				return nil
			})
			if errors.Is(err, spillway.ErrRejected) {
				refused.Store(true)
				cancel()
			}
		})
	}
	all.Wait()
	return refused.Load()
}

func TestRefusalsAreTheSameForAll(t *testing.T) {
	for _, name := range []string{SemaphoreTry, WorkerPool} {
		g, err := NewGuard(name, 1)
		if err != nil {
			t.Fatal(err)
		}
		if !refuses(t, g, 200) {
			t.Errorf("%s refused nothing", name)
		}
		g.Close()
	}
}
