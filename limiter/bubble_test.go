package limiter

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/limit"
)

// waitsOutside has a caller wait in l, on the real clock.
func waitsOutside(t *testing.T, l *Limiter) {
	t.Helper()
	first := acquire(t, l)
	done := make(chan error, 1)
	go func() { done <- l.Do(context.Background(), func(context.Context) error { return nil }) }()
	await.True(t, "a caller waits", func() bool { return l.Stats().Queued == 1 })
	first.Done(nil)
	if err := await.Receive(t, "the end of the wait", done); err != nil {
		t.Fatal(err)
	}
}

// waitsInside has two callers wait in l, in a bubble. One gets the slot after half a second, the other one
// has to leave within a second.
func waitsInside(t *testing.T, l *Limiter) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began, first := time.Now(), acquire(t, l)
		go func() {
			p := acquire(t, l)
			if after := time.Since(began); after != 500*time.Millisecond {
				t.Errorf("the slot of half a second was free after %v", after)
			}
			time.Sleep(time.Second)
			p.Release()
		}()
		synctest.Wait()
		go func() {
			ctx, cancel := context.WithDeadline(t.Context(), began.Add(time.Second))
			defer cancel()
			_, err := l.Acquire(ctx)
			if after := time.Since(began); after > time.Second || err == nil || l.maxWait == forever && (err != ctx.Err() || after != time.Second) {
				t.Errorf("%v after %v, with a deadline of a second", err, after)
			}
		}()
		time.Sleep(500 * time.Millisecond)
		first.Release()
		time.Sleep(time.Minute)
	})
}

// A limiter in a package variable is used by tests in bubbles, and by tests outside.
func TestALimiterServesSeveralBubbles(t *testing.T) {
	for name, cfg := range map[string]Config{
		"adaptive":  {},
		"fixed":     {Law: limit.NewFixed(1)},
		"semaphore": {Law: limit.NewFixed(1), MaxWait: NoMaxWait},
	} {
		t.Run(name, func(t *testing.T) {
			l := configured(t, cfg)
			if err := l.SetBounds(0, 1); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				waitsOutside(t, l)
				waitsInside(t, l)
				waitsInside(t, l)
			}
			atRest(t, l)
		})
	}
}

// A limiter that is made when it is first used may be made in a bubble.
func TestALimiterOutlivesTheBubbleThatMadeIt(t *testing.T) {
	var l *Limiter
	synctest.Test(t, func(t *testing.T) {
		l = fixed(t, 1, 8)
		time.Sleep(time.Hour)
		acquire(t, l).Done(nil)
	})
	for range 2 {
		waitsInside(t, l)
		waitsOutside(t, l)
	}
	atRest(t, l)
}
