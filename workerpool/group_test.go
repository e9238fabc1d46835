package workerpool

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
)

func TestTheFirstErrorOfAGroupCancelsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(t, Config{MaxWorkers: 2, QueueSize: 10})
		g := p.Group(t.Context())
		boom := errors.New("boom")
		var ran atomic.Int64
		var notified error
		jobs := []Job{
			func(ctx context.Context) error { <-ctx.Done(); notified = context.Cause(ctx); return ctx.Err() },
			func(context.Context) error { time.Sleep(time.Second); return boom },
			func(context.Context) error { ran.Add(1); return nil },
		}
		for _, job := range jobs {
			noError(t, g.Submit(job))
		}
		start := time.Now()
		if err := g.Wait(t.Context()); err != boom || notified != boom || time.Since(start) != time.Second {
			t.Fatalf("%v, the other was told %v, after %v", err, notified, time.Since(start))
		}
		if ran.Load() != 0 || p.Stats().Cancelled != 1 {
			t.Fatalf("%d ran after the error: %+v", ran.Load(), p.Stats())
		}
	})
}

func TestACollectingGroupRunsAllAndReturnsEveryError(t *testing.T) {
	p := pool(t, Config{MaxWorkers: 2})
	g := p.Collect(t.Context())
	a, b := errors.New("a"), errors.New("b")
	var ran atomic.Int64
	for _, err := range []error{a, nil, b, nil} {
		if err := g.Submit(func(context.Context) error { ran.Add(1); return err }); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Wait(t.Context()); !errors.Is(err, a) || !errors.Is(err, b) || ran.Load() != 4 {
		t.Fatalf("%v, %d ran", err, ran.Load())
	}
}

func TestWaitEndsWithItsContextAndMayBeCalledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(t, Config{MaxWorkers: 1})
		g := p.Group(t.Context())
		_ = g.Submit(sleep(2 * time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		noError(t, g.Wait(t.Context()))
	})
}

func TestWaitRaisesAPanicAgainOrReturnsIt(t *testing.T) {
	for _, policy := range []PanicPolicy{Reraise, AsError} {
		p := pool(t, Config{MaxWorkers: 1, OnPanic: policy})
		g := p.Group(t.Context())
		_ = g.Submit(func(context.Context) error { panic("bad") })
		var err error
		v, _ := outcomeOf(func() { err = g.Wait(context.Background()) })
		pe, ok := errors.AsType[*spillway.PanicError](err)
		if policy == Reraise && v != "bad" || policy == AsError && (!ok || !strings.Contains(string(pe.Stack), "TestWaitRaises")) {
			t.Errorf("policy %d: recovered %v, returned %v", policy, v, err)
		}
	}
	p := pool(t, Config{MaxWorkers: 1})
	g := p.Group(t.Context())
	_ = g.Submit(func(context.Context) error { runtime.Goexit(); return nil })
	if v, returned := outcomeOf(func() { _ = g.Wait(context.Background()) }); v != nil || returned {
		t.Errorf("Goexit became %v, returned %v", v, returned)
	}
}

func TestARefusedJobIsNoPartOfItsGroup(t *testing.T) {
	p := pool(t, Config{MaxWorkers: 1, QueueSize: -1, MaxWait: -1})
	g := p.Collect(t.Context())
	hold := make(chan struct{})
	_ = g.Submit(func(context.Context) error { <-hold; return nil })
	if err := g.Submit(nothing); reason(err) != spillway.ReasonQueueFull {
		t.Fatal(err)
	}
	close(hold)
	noError(t, g.Wait(t.Context()))
}

func TestADroppedJobIsAnErrorOfItsGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(t, Config{MaxWorkers: 1, QueueSize: 1})
		g := p.Collect(t.Context())
		_ = g.Submit(sleep(time.Second))
		_ = g.Submit(nothing)
		synctest.Wait()
		p.Close()
		if err := g.Wait(t.Context()); reason(err) != spillway.ReasonClosed {
			t.Fatal(err)
		}
	})
}
