package fanout

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// Singleflight shares work between concurrent callers with the same key: one caller starts the work, all
// callers get its result. The zero Singleflight is ready. A Singleflight is safe for concurrent use and must not
// be copied. If K is or contains an interface type, Do returns an error for a key that cannot be
// compared, such as a slice.
type Singleflight[K comparable, V any] struct {
	// OnLate receives each error, including panics, of work that no caller waited for any more, on
	// the goroutine of the work. Set OnLate before the first use of the Singleflight, or leave it nil.
	OnLate func(K, error)

	mu      sync.Mutex
	flights map[K]*flight[V]
}

// flight is the work for one key. The group's lock guards all fields except done, until done is
// closed.
type flight[V any] struct {
	waiting int
	joined  bool // a second caller has joined
	cancel  context.CancelCauseFunc
	done    chan struct{}

	value  V
	err    error
	exited bool // fn called runtime.Goexit
}

var errAbandoned = errors.New("fanout: no caller waits any more")

// Do returns the result of fn for key. shared reports whether another caller joined the work. If
// work for key is already running, Do joins that work and does not call fn. All callers get the
// same V, and share whatever V points to.
//
// fn runs on its own goroutine. Its context has the values of the starting caller's context, but
// neither the deadline nor the cancellation. When ctx ends, Do returns ctx.Err(), and the work
// continues for the other callers. When the last caller has returned, fn's context is cancelled,
// and the next caller starts new work.
//
// A panic of fn is a *spillway.PanicError for every caller, and runtime.Goexit in fn ends every
// caller's goroutine. A result that no caller waits for is dropped; OnLate receives its error. Work
// for a key that is not equal to itself, such as NaN, is not shared.
func (g *Singleflight[K, V]) Do(ctx context.Context, key K, fn func(context.Context) (V, error)) (v V, shared bool, err error) {
	if fn == nil {
		return v, false, errors.New("fanout: Singleflight.Do: fn is nil")
	}
	if err := ctx.Err(); err != nil {
		return v, false, err
	}
	same, err := equalsItself(key)
	if err != nil {
		return v, false, err
	}
	f := g.join(ctx, key, same, fn)
	select {
	case <-f.done:
	case <-ctx.Done():
		if !g.left(key, f) {
			return v, false, ctx.Err()
		}
	}
	if f.exited {
		runtime.Goexit()
	}
	return f.value, f.joined, f.err
}

// equalsItself reports whether a map finds key again. The error reports a key that cannot be
// compared: a map panics for such a key, and would do so under the group's lock. The comparison
// alone is no proof: it ends at the first field that differs, as NaN differs from itself.
func equalsItself[K comparable](key K) (same bool, err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("fanout: Singleflight.Do: the key is a %T, which cannot be compared: use strings, numbers, or structs and arrays of those", key)
		}
	}()
	_ = map[K]bool(nil)[key]
	other := key
	return key == other, nil
}

// join adds a caller to the work for key. If there is none, join starts work, which later callers
// can join if shared is set.
func (g *Singleflight[K, V]) join(ctx context.Context, key K, shared bool, fn func(context.Context) (V, error)) *flight[V] {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.flights[key]
	if f == nil {
		f = g.start(ctx, key, shared, fn)
	} else {
		f.joined = true
	}
	f.waiting++
	return f
}

// start starts the work for key. The lock is held.
func (g *Singleflight[K, V]) start(ctx context.Context, key K, shared bool, fn func(context.Context) (V, error)) *flight[V] {
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
		exited := true
		defer func() {
			late := g.finish(key, f, v, err, exited)
			f.cancel(context.Canceled)
			if late && err != nil && g.OnLate != nil {
				g.OnLate(key, err)
			}
		}()
		v, err = guard(ctx, key, func(ctx context.Context, _ K) (V, error) { return fn(ctx) })
		exited = false
	}()
	return f
}

// finish records the result of the work, and reports whether no caller waits for it.
func (g *Singleflight[K, V]) finish(key K, f *flight[V], v V, err error, exited bool) (late bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f.value, f.err, f.exited = v, err, exited
	g.forget(key, f)
	close(f.done)
	return f.waiting == 0
}

// left removes a caller whose context has ended, and reports whether the work has ended anyway.
func (g *Singleflight[K, V]) left(key K, f *flight[V]) (ended bool) {
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

// forget lets the next caller for key start new work. The lock is held.
func (g *Singleflight[K, V]) forget(key K, f *flight[V]) {
	if g.flights[key] == f {
		delete(g.flights, key)
	}
}
