// Package await lets a test wait for an event for as long as the event takes. All waits
// share one generous limit. Its passing means that the event never came, not that the
// machine was slow: the test then fails, and says what it waited for and what every
// goroutine did meanwhile.
package await

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
)

// Limit is how long a test waits for any one event.
const Limit = time.Minute

// longest is the longest pause between two looks at a condition.
const longest = 20 * time.Millisecond

// True waits until holds returns true. It calls holds on the test's own goroutine, so
// that holds may end the test.
func True(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(Limit)
	for pause := time.Millisecond; !condition(); pause = min(2*pause, longest) {
		if !time.Now().Before(deadline) {
			t.Fatalf("waited %v for this: %s\n\n%s", Limit, what, goroutines())
		}
		time.Sleep(pause)
	}
}

// Receive returns the next value of a channel, or the zero value when the channel is closed.
func Receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	limit := time.NewTimer(Limit)
	defer limit.Stop()
	select {
	case v := <-from:
		return v
	case <-limit.C:
		t.Fatalf("waited %v for this: %s\n\n%s", Limit, what, goroutines())
		panic("not reached")
	}
}

// Context returns a context for calls that wait. It ends with the test, or at the limit,
// and then prints what was waited for.
func Context(t testing.TB, what string) context.Context {
	late := fmt.Errorf("waited %v for this: %s", Limit, what)
	ctx, cancel := context.WithTimeoutCause(t.Context(), Limit, late)
	t.Cleanup(cancel)
	context.AfterFunc(ctx, func() {
		if context.Cause(ctx) == late {
			fmt.Fprintf(os.Stderr, "%s: %v\n\n%s", t.Name(), late, goroutines())
		}
	})
	return ctx
}

// Deadline returns a context that has a deadline far ahead, and a function that ends the
// context as if the deadline had passed: Err is then context.DeadlineExceeded. A test
// says with it when a deadline passes, where the time of a real clock would.
func Deadline(parent context.Context) (ctx context.Context, pass func()) {
	p := &passing{Context: parent, at: time.Now().Add(time.Hour), done: make(chan struct{})}
	context.AfterFunc(parent, func() { p.end(parent.Err()) })
	return p, func() { p.end(context.DeadlineExceeded) }
}

type passing struct {
	context.Context
	at   time.Time
	done chan struct{}
	once sync.Once
	err  error // set before done is closed
}

func (p *passing) end(err error) {
	p.once.Do(func() {
		p.err = err
		close(p.done)
	})
}

func (p *passing) Deadline() (time.Time, bool) { return p.at, true }

func (p *passing) Done() <-chan struct{} { return p.done }

func (p *passing) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

func goroutines() []byte {
	stack := make([]byte, 1<<20)
	return stack[:runtime.Stack(stack, true)]
}
