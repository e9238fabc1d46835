package fanout

import (
	"context"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
)

// goroutineLabels returns the profile labels of its caller's goroutine.
func goroutineLabels(t testing.TB) string {
	var b strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		t.Error(err)
	}
	for block := range strings.SplitSeq(b.String(), "\n\n") {
		if strings.Contains(block, "fanout.goroutineLabels") {
			_, labels, _ := strings.Cut(block, "# labels: ")
			labels, _, _ = strings.Cut(labels, "\n")
			return labels
		}
	}
	return "no such goroutine"
}

// A helper started by one call may begin during the next call. Such a helper once ran the branches of
// the next call under the profile labels of the earlier caller.
func TestALateHelperHasTheLabelsOfTheCallThatItHelps(t *testing.T) {
	for _, c := range []struct {
		ctx  context.Context
		want string
	}{
		{t.Context(), ""},
		{pprof.WithLabels(t.Context(), pprof.Labels("patient", "815")), `{"patient":"815"}`},
	} {
		got := "not run"
		f := made(t, Config{Mode: Parallel}, Required("a", func(context.Context, int) (int, error) {
			got = goroutineLabels(t)
			return 1, nil
		}, func(*int, int) {}))
		f.procs.Store(1)
		fr := newFrame(f)
		fr.pending = 1 // the caller waits for the helper started below
		f.bulkhead.take()
		begins := func() bool {
			fr.mu.Lock()
			defer fr.mu.Unlock()
			return fr.phase == open
		}
		pprof.Do(t.Context(), pprof.Labels("patient", "4711"), func(context.Context) {
			go func() {
				for !begins() {
					runtime.Gosched()
				}
				fr.help()
			}()
		})
		if _, err := fr.parallel(c.ctx, 0, false, false); err != nil || got != c.want {
			t.Errorf("%v: labels %s, want %s", err, got, c.want)
		}
	}
}
