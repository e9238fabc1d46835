package fanout

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// Group shares work between callers that want the same thing at the same time:
// one of them causes it, all get its result. The zero Group is ready. It is safe
// for concurrent use and must not be copied. Where K is an interface, or has one in
// it, Do refuses a key whose type cannot be compared, such as a slice.
type Group[K comparable, V any] struct {
	// OnLate, if set before the first use, is told of each error, also a panic,
	// of work that no caller waited for any more, on the goroutine of that work.
	OnLate func(K, error)

	mu      sync.Mutex
	flights map[K]*flight[V]
}

// flight is the work for one key. All but done is guarded by the group's lock,
// until done is closed.
type flight[V any] struct {
	waiting int
	joined  bool // by a second caller
	cancel  context.CancelCauseFunc
	done    chan struct{}

	value  V
	err    error
	goexit bool
}

var errAbandoned = errors.New("fanout: no caller waits any more")

// Do returns what fn returns for key, and whether another caller got it too. If
// the work for key is already going on, Do joins it and fn is not called. Callers
// get the same V: what it points to is shared.
//
// fn runs on a goroutine of its own, with the values of the context of the caller
// that caused it and neither its deadline nor its cancellation: Do returns
// ctx.Err() when ctx ends, and the work goes on for the others. When the last of
// them has returned, its context is cancelled, and the next caller starts it anew.
//
// A panic of fn is a *spillway.PanicError for every caller, and runtime.Goexit in
// fn ends every caller's goroutine. A result that no caller waits for is
// dropped; OnLate is told its error. Work for a key that is not equal to itself, such
// as NaN, is shared with nobody.
func (g *Group[K, V]) Do(ctx context.Context, key K, fn func(context.Context) (V, error)) (v V, shared bool, err error) {
	if fn == nil {
		return v, false, errors.New("fanout: Group.Do: fn is nil")
	}
	if err := ctx.Err(); err != nil {
		return v, false, err
	}
	same, err := equalsItself(key)
	if err != nil {
		return v, false, err
	}
	g.mu.Lock()
	f := g.flights[key]
	if f == nil {
		f = g.start(ctx, key, same, fn)
	} else {
		f.joined = true
	}
	f.waiting++
	g.mu.Unlock()

	select {
	case <-f.done:
	case <-ctx.Done():
		if !g.left(key, f) {
			return v, false, ctx.Err()
		}
	}
	if f.goexit {
		runtime.Goexit()
	}
	return f.value, f.joined, f.err
}

// equalsItself reports whether a map finds key again. The error says that the key
// cannot be compared at all: a map panics for it, and would do so under the lock.
func equalsItself[K comparable](key K) (same bool, err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("fanout: Group.Do: the key is a %T, which cannot be compared: use strings, numbers, or structs and arrays of those", key)
		}
	}()
	other := key
	return key == other, nil
}

// start starts the work for key, which later callers find if it is shared. It is called
// with the lock held.
func (g *Group[K, V]) start(ctx context.Context, key K, shared bool, fn func(context.Context) (V, error)) *flight[V] {
	f := &flight[V]{done: make(chan struct{})}
	ctx, f.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	if g.flights == nil {
		g.flights = map[K]*flight[V]{}
	}
	if shared {
		g.flights[key] = f
	}
	go func() {
		var v V
		var err error
		goexit := true
		defer func() {
			g.mu.Lock()
			f.value, f.err, f.goexit = v, err, goexit
			g.forget(key, f)
			close(f.done)
			late := f.waiting == 0
			g.mu.Unlock()
			f.cancel(context.Canceled)
			if late && err != nil && g.OnLate != nil {
				g.OnLate(key, err)
			}
		}()
		v, err = guard(ctx, key, func(ctx context.Context, _ K) (V, error) { return fn(ctx) })
		goexit = false
	}()
	return f
}

// left takes a caller away whose context has ended, and reports whether the
// result is there all the same.
func (g *Group[K, V]) left(key K, f *flight[V]) (ended bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-f.done:
		return true
	default:
	}
	if f.waiting--; f.waiting == 0 {
		g.forget(key, f)
		f.cancel(errAbandoned)
	}
	return false
}

// forget lets the next caller start anew. It is called with the lock held.
func (g *Group[K, V]) forget(key K, f *flight[V]) {
	if g.flights[key] == f {
		delete(g.flights, key)
	}
}
