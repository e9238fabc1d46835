package workerpool

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/spillway-go/spillway"
)

// Do runs fn on a worker of p and returns what it returned. It waits for room
// as Submit does.
//
// When ctx ends before fn starts, fn never runs. When it ends while fn runs, Do
// returns ctx.Err() at once; fn, which has the same ctx, finishes on its worker
// and its result is dropped. So fn must not write to what its caller uses
// afterwards: let it return everything it makes.
//
// A panic of fn is raised again in the caller, with its original value, and
// runtime.Goexit ends the caller too. If the caller has left by then, a panic
// goes the way of a submitted job's: to Config.OnDone, or it ends the process.
//
// Do called by a job of the same pool waits for a second worker while it holds
// the first: with all workers doing so, they wait until their contexts end.
func Do[T any](ctx context.Context, p *Pool, fn func(context.Context) (T, error)) (T, error) {
	var zero T
	if err := ctx.Err(); err != nil {
		p.abandoned()
		return zero, err
	}
	c := &call[T]{fn: fn, pool: p, done: make(chan struct{})}
	if err := p.submit(ctx, c, p.cfg.MaxWait >= 0); err != nil {
		return zero, err
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		if c.leave() {
			return zero, ctx.Err()
		}
		<-c.done
	}
	switch {
	case c.panicked != nil:
		panic(c.panicked.Value)
	case c.goexit:
		runtime.Goexit()
	}
	return c.value, c.err
}

// call is a function that somebody waits for.
type call[T any] struct {
	fn   func(context.Context) (T, error)
	pool *Pool
	done chan struct{}

	mu          sync.Mutex // orders the end of fn and the caller's leaving
	ended, left bool

	value    T
	err      error
	panicked *spillway.PanicError
	goexit   bool
}

// leave says that nobody waits any more. False: fn has ended, its result is
// there.
func (c *call[T]) leave() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = !c.ended
	return c.left
}

// end hands the result over. False: the caller has left.
func (c *call[T]) end() bool {
	c.mu.Lock()
	c.ended = true
	left := c.left
	c.mu.Unlock()
	if !left {
		close(c.done)
	}
	return !left
}

func (c *call[T]) run(ctx context.Context) (err error) {
	returned := false
	defer func() {
		if returned {
			c.err = err
			c.end()
			return
		}
		v := recover()
		if v == nil {
			c.goexit = true
			c.end()
			return
		}
		c.panicked = &spillway.PanicError{Value: v, Stack: debug.Stack()}
		err = c.panicked
		if !c.end() && c.pool.cfg.OnDone == nil {
			panic(v) // nobody waits and nobody is told: do not swallow it
		}
	}()
	c.value, err = c.fn(ctx)
	returned = true
	return err
}

func (c *call[T]) discard(err error) {
	c.err = err
	c.end()
}
