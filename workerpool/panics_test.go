package workerpool

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limit"
)

// moody is a user's context whose Err panics now and then.
type moody struct {
	context.Context
	panics atomic.Bool
}

func (m *moody) Err() error {
	if m.panics.Load() {
		panic("bug in Err")
	}
	return m.Context.Err()
}

// A submitter that finds the queue full calls Err of the queued jobs' contexts, under the lock of
// the queue. A panic of Err once hit that submitter, and the pool stayed locked forever.
func TestAContextThatPanicsHarmsNoOtherSubmitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(t, Config{MaxWorkers: 1, QueueSize: 1})
		var ran atomic.Int64
		gate := make(chan struct{})
		job := func(context.Context) error { <-gate; ran.Add(1); return nil }
		ctx := &moody{Context: t.Context()}
		for _, ctx := range []context.Context{t.Context(), ctx} {
			noError(t, p.TrySubmit(ctx, job))
			synctest.Wait()
		}
		ctx.panics.Store(true)
		submitted := make(chan error, 1)
		go func() { submitted <- p.Submit(t.Context(), job) }()
		time.Sleep(time.Second) // the pool's looks call Err too
		synctest.Wait()
		if s := p.Stats(); s.Blocked != 1 || s.Queued != 1 || s.InFlight != 1 {
			t.Errorf("%+v", s)
		}
		ctx.panics.Store(false)
		close(gate)
		if err := <-submitted; err != nil {
			t.Error(err)
		}
		if err := p.Drain(t.Context()); err != nil || ran.Load() != 3 {
			t.Errorf("%v, %d ran", err, ran.Load())
		}
	})
}

// silent is a law that panics when it is asked.
type silent struct {
	limit.Law
	panics bool
}

func (s *silent) Limit() int {
	if s.panics {
		panic("bug in Limit")
	}
	return s.Law.Limit()
}

func TestALawThatPanicsDoesNotLockItsPool(t *testing.T) {
	law := &silent{Law: limit.NewFixed(3)}
	p := pool(t, Config{Law: law})
	law.panics = true
	func() {
		defer func() {
			if recover() == nil {
				t.Error("swallowed")
			}
		}()
		_ = p.Resize(1, 10)
	}()
	if !p.ctl.mu.TryLock() {
		t.Fatal("the pool is locked")
	}
	p.ctl.mu.Unlock()
	law.panics = false
	if err := p.Resize(0, 2); err != nil || p.Stats().Limit != 2 {
		t.Errorf("%v, %+v", err, p.Stats())
	}
}
