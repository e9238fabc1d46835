package fan

import (
	"context"
	"flag"
	"io"
	"os"
	"testing"
	"testing/synctest"
)

// inBubble runs f in virtual time: clocks stand still while any of its goroutines
// can run, and jump when all of them wait. Where branches wait, times are then
// exact, whatever else the machine does; what computing costs is not in them.
//
// Only package testing/synctest can do that to code which knows nothing of it,
// and it wants a test. So the process, which must be a contestant of its own,
// becomes a test binary by testing.Main, which is kept for systems that simulate
// go test. It never gets so far as to end the process: the one test does not
// return.
func inBubble[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	done := make(chan answer)
	testing.Init()
	flag.CommandLine.SetOutput(io.Discard)
	if err := flag.CommandLine.Parse(nil); err != nil {
		return *new(T), err
	}
	os.Stdout = os.Stderr
	go testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{
		Name: "virtual time",
		F: func(t *testing.T) {
			var a answer
			synctest.Test(t, func(t *testing.T) { a.v, a.err = f(t.Context()) })
			done <- a
			select {}
		},
	}}, nil, nil)
	select {
	case a := <-done:
		return a.v, a.err
	case <-ctx.Done():
		return *new(T), ctx.Err()
	}
}
