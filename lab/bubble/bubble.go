// Package bubble runs a contestant in virtual time.
package bubble

import (
	"context"
	"flag"
	"io"
	"os"
	"testing"
	"testing/synctest"
)

// Run runs f in virtual time: the clock stops while any of its goroutines can run, and
// jumps when all of them wait. Times of waiting are then exact and cost nothing, whatever
// else the machine does; the time of computing is not in them.
//
// Only package testing/synctest can do that for unchanged code, and it needs a test.
// So the process, which must be a contestant of its own, becomes a test binary by
// testing.Main, which exists for systems that simulate go test. It does not end the
// process, because the one test does not return.
func Run[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
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
