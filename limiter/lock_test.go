package limiter

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

func TestDoneDoesNotWaitForTheLockAndIsCountedByItsHolder(t *testing.T) {
	law := &told{Law: limit.NewFixed(3)}
	l := configured(t, Config{Law: law})
	permits := []Permit{acquire(t, l), acquire(t, l), acquire(t, l)}
	l.lock(l.now())
	for _, p := range permits {
		p.Done(nil)
		p.Release()
	}
	if n := l.gate.InFlight(); n != 3 {
		t.Fatalf("%d in flight: another goroutine moved the gate", n)
	}
	l.unlock()
	if l.gate.InFlight() != 0 || l.ended.Load() != nil {
		t.Fatal("what was left was not entered when the lock became free")
	}
	for i, s := range law.samples {
		if s.Seq != uint64(i+1) {
			t.Fatalf("entered in another order than left: %+v", law.samples)
		}
	}
	atRest(t, l)
}

func TestTwoEndsAtOnceAreOne(t *testing.T) {
	ends := 0
	l := configured(t, Config{Law: limit.NewFixed(1), Observer: &Observer{Ended: func(End) { ends++ }}})
	p := acquire(t, l)
	var both sync.WaitGroup
	p.s.mu.Lock() // both have seen that the work runs
	both.Go(func() { p.Done(nil) })
	both.Go(p.Release)
	for range 1000 {
		runtime.Gosched()
	}
	p.s.mu.Unlock()
	if both.Wait(); ends != 1 || l.Stats().Completed != 1 {
		t.Errorf("told of %d ends: %+v", ends, l.Stats())
	}
	atRest(t, l)
}

// Refusals are repeated without the lock. After a slot was released they must not be
// repeated, although the end is not settled yet.
func TestNoCallerIsRefusedForASlotThatWasGivenBack(t *testing.T) {
	l := fixed(t, 1, -1)
	p := acquire(t, l)
	if _, err := l.TryAcquire(t.Context()); reason(err) != spillway.ReasonQueueFull {
		t.Fatal(err)
	}
	l.lock(l.now())
	p.Done(nil)
	answer := make(chan error, 1)
	go func() {
		q, err := l.TryAcquire(t.Context())
		q.Release()
		answer <- err
	}()
	for range 100 {
		runtime.Gosched()
	}
	l.unlock()
	if err := <-answer; err != nil {
		t.Fatal(err)
	}
	atRest(t, l)
}

func TestAnEndHandedOverWakesAWaiterAndEndsADrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 1, 10)
		p := acquire(t, l)
		start := time.Now()
		go func() { acquire(t, l).Done(nil) }()
		synctest.Wait()
		drained := make(chan error)
		go func() { drained <- l.Drain(t.Context()) }()
		synctest.Wait()
		l.lock(l.now())
		p.Done(nil)
		l.unlock()
		if err := <-drained; err != nil || time.Since(start) > 0 {
			t.Fatalf("after %v: %v", time.Since(start), err)
		}
		atRest(t, l)
	})
}

// Virtual time advances only while all goroutines wait, so a lost wake-up shows as a wait
// that took time.
func TestNoWakeUpIsLostWhileAllCompete(t *testing.T) { noWakeUpIsLost(t, 30) }

// noWakeUpIsLost lets each of a hundred callers run the given number of pieces of work.
func noWakeUpIsLost(t *testing.T, each int) {
	synctest.Test(t, func(t *testing.T) {
		for _, slots := range []int{1, 3, 100} {
			l := configured(t, Config{Law: &clockwork{Law: limit.NewFixed(slots), t: t}})
			start := time.Now()
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() {
					for i := range each {
						p, err := l.Acquire(context.Background())
						if err != nil {
							t.Error(err)
						}
						if i%8 == 0 {
							runtime.Gosched()
						}
						go p.Release() // a copy races
						p.Done(nil)
					}
				})
			}
			wg.Wait()
			if passed := time.Since(start); passed != 0 {
				t.Errorf("%d slots: a caller waited for %v although there was room", slots, passed)
			}
			synctest.Wait()
			atRest(t, l)
		}
	})
}

// A caller whose context ends at the moment of the grant ends its wait by itself. The
// message of the grant comes late and must not wake the next waiter.
func TestAMessageThatComesLateWakesNoOtherCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 1, 10)
		p := acquire(t, l)
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() {
			_, err := l.Acquire(ctx)
			gone <- err
		}()
		synctest.Wait()
		now := l.lock(l.now())
		l.settle(now, p.s, limit.Success) // the waiter is granted but not notified yet
		p.s.generation.Add(1)             // p has ended
		late := l.woken
		l.woken = nil
		cancel()
		l.unlock()
		if err := <-gone; err != context.Canceled {
			t.Fatal(err)
		}
		late.ready <- struct{}{}

		q := acquire(t, l)
		next := make(chan time.Duration)
		start := time.Now()
		go func() {
			acquire(t, l).Done(nil)
			next <- time.Since(start)
		}()
		synctest.Wait()
		time.Sleep(time.Second)
		q.Done(nil)
		if waited := <-next; waited != time.Second {
			t.Fatalf("admitted after %v beside other work, want 1s", waited)
		}
		atRest(t, l)
	})
}
