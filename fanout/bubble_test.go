package fanout

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A Fanout in a package variable is used by tests in bubbles, and by tests outside.
func TestAFanoutServesSeveralBubbles(t *testing.T) {
	for _, mode := range []Mode{Sequential, Parallel, Auto} {
		branch := func(context.Context) {}
		f := same(t, Config{Mode: mode}, 3, func(ctx context.Context, _ int) (uint64, error) {
			branch(ctx)
			return 1, ctx.Err()
		})
		call := func(t *testing.T) {
			t.Helper()
			if res, err := f.Do(t.Context(), 0); err != nil || res.Value != 3 {
				t.Error(res, err)
			}
		}
		for range 2 {
			for range 100 {
				call(t)
			}
			outside := branch
			for range 2 {
				synctest.Test(t, func(t *testing.T) {
					branch = func(ctx context.Context) {
						select {
						case <-time.After(time.Second):
						case <-ctx.Done():
						}
					}
					began, want := time.Now(), time.Second
					if mode == Sequential {
						want *= 3
					}
					call(t)
					if took := time.Since(began); took != want && mode != Auto {
						t.Errorf("%v took %v, want %v", mode, took, want)
					}
					call(t)
				})
			}
			branch = outside
		}
	}
}
