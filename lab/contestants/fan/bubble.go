package main

import (
	"context"
	"flag"
	"io"
	"os"
	"testing"
	"testing/synctest"
)

// inBubble runs f in virtual time: the clock stops while any of its goroutines can
// run, and jumps when all of them wait. Times of waiting branches are then exact,
// whatever else the machine does; the cost of computing is not in them.
//
// Only package testing/synctest can do that for unchanged code, and it needs a test.
// So this process becomes a test binary by testing.Main, which exists for systems that
// simulate go test. It does not end the process, because the one test does not return.
func inBubble[T any](ctx context.Context, f func(context.Context) (T, error)) (v T, err error) {
	testing.Init()
	flag.CommandLine.SetOutput(io.Discard)
	if err := flag.CommandLine.Parse(nil); err != nil {
		return v, err
	}
	os.Stdout = os.Stderr
	done := make(chan struct{})
	go testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{
		Name: "virtual time",
		F: func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { v, err = f(t.Context()) })
			close(done)
			select {}
		},
	}}, nil, nil)
	select {
	case <-done:
		return v, err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
