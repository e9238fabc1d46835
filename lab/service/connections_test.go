package service

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// query asks n times at once for a connection for a second, and counts what came of it.
func query(ctx context.Context, c *Connections, n int) (done, refused, left int) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			err := c.Query(ctx, func() error { time.Sleep(time.Second); return nil })
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				done++
			case errors.Is(err, ErrConnections):
				refused++
			case errors.Is(err, context.DeadlineExceeded):
				left++
			}
		})
	}
	all.Wait()
	return done, refused, left
}

func TestOneConnectionTooManyIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewConnections(3, false)
		for range 2 { // they are given back
			if done, refused, _ := query(t.Context(), c, 10); done != 3 || refused != 7 {
				t.Errorf("%d done, %d refused", done, refused)
			}
		}
	})
}

func TestInADriversPoolOneTooManyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, start := NewConnections(3, true), time.Now()
		if done, _, _ := query(t.Context(), c, 10); done != 10 || time.Since(start) != 4*time.Second {
			t.Errorf("%d done in %v", done, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		if done, _, left := query(ctx, c, 10); done != 6 || left != 4 {
			t.Errorf("%d done, %d left", done, left)
		}
	})
}

func TestAConnectionIsClosedAlsoByAPanic(t *testing.T) {
	c := NewConnections(1, false)
	func() {
		defer func() { _ = recover() }()
		_ = c.Query(t.Context(), func() error { panic("broken") })
	}()
	if err := c.Query(t.Context(), func() error { return nil }); err != nil {
		t.Error(err)
	}
}
