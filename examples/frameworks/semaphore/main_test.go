package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

const size = 4

func fixed(t *testing.T, queue int) *limiter.Limiter {
	t.Helper()
	lim, err := limiter.New(limiter.Config{Law: limit.NewFixed(size), QueueSize: queue})
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

// The same work gives the same result behind each of them.
func TestOneIsAsGoodAsTheOther(t *testing.T) {
	for name, newSlots := range map[string]func() slots{
		"semaphore": func() slots { return semaphore.NewWeighted(size) },
		"limiter":   func() slots { return NewWeighted(fixed(t, 0)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlots()
				var now, most atomic.Int64
				done, refused, err := Work(t.Context(), s, 100, func(context.Context) {
					n := now.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					time.Sleep(time.Millisecond)
					now.Add(-1)
				})
				if done != 100 || refused != 0 || err != nil || most.Load() != size {
					t.Errorf("done %d, refused %d, error %v, at most %d at once, want %d", done, refused, err, most.Load(), size)
				}
				if !s.TryAcquire(size) || s.TryAcquire(1) {
					t.Error("the slots are not all there, or more than that")
				}
				s.Release(size)

				// Panics cost no slot.
				for range 3 * size {
					func() {
						defer func() { _ = recover() }()
						if err := s.Acquire(t.Context(), 1); err != nil {
							t.Fatal(err)
						}
						defer s.Release(1)
						panic("broken")
					}()
				}
				if !s.TryAcquire(size) {
					t.Error("a panic kept its slot")
				}

				// A wait ends with its context.
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				if err := s.Acquire(ctx, 1); err == nil {
					t.Error("there was no slot, and Acquire took one")
				}
				s.Release(size)
				func() {
					defer func() {
						if recover() == nil {
							t.Error("what is not held was released")
						}
					}()
					s.Release(1)
				}()
			})
		})
	}
}

func TestARefusalSaysWhy(t *testing.T) {
	lim := fixed(t, -1)
	s := NewWeighted(lim)
	if err := s.Acquire(t.Context(), size); err != nil {
		t.Fatal(err)
	}
	rejection, ok := errors.AsType[*spillway.Rejection](s.Acquire(t.Context(), 1))
	if !ok || rejection.Reason != spillway.QueueFull {
		t.Errorf("refused with %+v", rejection)
	}
	s.Release(size)
	if st := lim.Stats(); st.InFlight != 0 || st.Rejected != 1 || st.Completed != 1 {
		t.Errorf("%+v", st)
	}
}
