// Package bubble runs a contestant in virtual time.
package bubble

import (
	"context"
	"flag"
	"io"
	"testing"
	"testing/synctest"
)

// Func makes f run in virtual time: the clock stops while any of its goroutines can run,
// and jumps when all of them wait. Times of waiting are then exact and cost nothing,
// whatever else the machine does; the time of computing is not in them.
//
// Only package testing/synctest can do that for unchanged code, and it needs a test.
// So the process, which must be a contestant of its own, becomes a test binary by
// testing.Main, which exists for systems that simulate go test. It does not end the
// process, because the one test does not return.
func Func[In, Out any](f func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		testing.Init()
		flag.CommandLine.SetOutput(io.Discard)
		if err := flag.CommandLine.Parse(nil); err != nil {
			return *new(Out), err
		}
		var out Out
		var err error
		done := make(chan struct{})
		test := func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { out, err = f(t.Context(), in) })
			close(done)
			select {}
		}
		go testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "virtual time", F: test}}, nil, nil)
		select {
		case <-done:
			return out, err
		case <-ctx.Done():
			return *new(Out), ctx.Err()
		}
	}
}
