package limiter

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// leased fails unless err is a Budget refusal with the given cause.
func leased(t *testing.T, err error, cause string) {
	t.Helper()
	if rej, ok := errors.AsType[*spillway.Rejection](err); !ok || rej.Reason != spillway.ReasonBudget || rej.Cause != cause {
		t.Errorf("%v, want budget (%s)", err, cause)
	}
}

func TestALeaseBoundsTheLimitAndEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := configured(t, Config{Law: limit.NewFixed(10), QueueSize: -1})
		l.SetLease(2, time.Now().Add(time.Second), "ours")
		first, second := acquire(t, l), acquire(t, l)
		_, err := l.Acquire(t.Context())
		leased(t, err, "ours")
		if s := l.Stats(); s.Limit != 2 || s.RejectedBy[spillway.ReasonBudget] != 1 || s.State != "lease: ours: 2 instead of 10; the law: fixed" {
			t.Errorf("%d, %v, %s", s.Limit, s.RejectedBy, s.State)
		}
		first.Done(nil)
		second.Done(nil)

		time.Sleep(time.Second) // as if the process had been paused
		_, err = l.Acquire(t.Context())
		leased(t, err, "ours")
		_, err = l.AcquireWith(t.Context(), Request{noWait: true, Cost: 5})
		leased(t, err, "ours")
		l.SetLease(3, time.Now().Add(time.Second), "ours")
		acquire(t, l).Done(nil)
		l.SetLease(0, time.Now().Add(time.Second), "other")
		_, err = l.Acquire(t.Context())
		leased(t, err, "other")
		l.SetLease(0, time.Time{}, "")
		for range 10 {
			defer acquire(t, l).Done(nil)
		}
		if s := l.Stats(); s.Limit != 10 || s.Offered != s.Admitted+s.Rejected {
			t.Errorf("%+v", s)
		}
	})
}

func TestTheLawsOwnLimitIsNotBlamedOnTheLease(t *testing.T) {
	l := configured(t, Config{Law: limit.NewFixed(1), QueueSize: -1})
	l.SetLease(5, time.Now().Add(time.Hour), "ours")
	defer acquire(t, l).Done(nil)
	if _, err := l.Acquire(t.Context()); !errors.Is(err, spillway.ErrRejected) || err.(*spillway.Rejection).Reason != spillway.ReasonQueueFull {
		t.Error(err)
	}
}

func TestWaitersWaitForTheNextLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := configured(t, Config{Law: limit.NewFixed(4)})
		l.SetLease(1, time.Now().Add(time.Second), "ours")
		running, done := acquire(t, l), make(chan error)
		go func() { done <- l.Do(t.Context(), func(context.Context) error { return nil }) }()
		synctest.Wait()
		time.Sleep(time.Second)
		running.Done(nil) // makes room, but the lease is over
		synctest.Wait()
		holds(t, l, Stats{Queued: 1})
		l.SetLease(1, time.Now().Add(time.Second), "ours")
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// In any sequence of leases and calls, work starts only within a lease.
func FuzzNothingStartsWithoutALease(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			l := configured(t, Config{Law: limit.NewFixed(1 + r.IntN(8)), MaxRefused: float64(r.IntN(2)) * .1})
			slots, until := 1, time.Now().Add(time.Second)
			l.SetLease(slots, until, "ours")
			for range 200 {
				switch r.IntN(4) {
				case 0:
					slots, until = r.IntN(6), time.Now().Add(time.Duration(r.IntN(50))*time.Millisecond)
					l.SetLease(slots, until, "ours")
				case 1:
					time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
				default:
					work := time.Duration(r.IntN(40)) * time.Millisecond
					go func() {
						_ = l.Do(t.Context(), func(context.Context) error {
							if slots == 0 || !time.Now().Before(until) {
								t.Errorf("started with %d slots until %v", slots, time.Until(until))
							}
							time.Sleep(work)
							return nil
						})
					}()
				}
				synctest.Wait() // granted work has begun
			}
			time.Sleep(time.Minute)
			l.SetLease(8, time.Now().Add(time.Hour), "ours")
			time.Sleep(time.Minute)
			atRest(t, l)
		})
	})
}
