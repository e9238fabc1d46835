package clusterlimit

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/clusterlimit/internal/budget"
)

// contest is the result of members that renew one value together.
type contest struct {
	tries, renewals, beaten int
	gap                     time.Duration // the longest time of a member without a renewal
}

// contend lets members renew for a number of leases, in virtual time. A round trip to the engine
// takes a millisecond; a value that a member reads is half a round trip old.
func contend(t *testing.T, members int, lease time.Duration, leases int) (all contest) {
	const trip = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		revision := 0
		end := time.Now().Add(time.Duration(leases) * lease)
		var running sync.WaitGroup
		for i := range members {
			random := rand.New(rand.NewPCG(uint64(i), 7))
			running.Go(func() {
				every := lease / renewals
				time.Sleep(1 + time.Duration(random.Int64N(int64(every)))) // they did not start together
				last := time.Now()
				for time.Now().Before(end) {
					tries := 0
					ctx, cancel := context.WithTimeout(context.Background(), lease/attempts)
					err := compete(ctx, lease, func(context.Context) (won bool, err error) {
						tries++
						time.Sleep(trip / 2)
						mu.Lock()
						read := revision
						mu.Unlock()
						time.Sleep(trip) // the answer comes back, and the write arrives
						mu.Lock()
						if won = revision == read; won {
							revision++
						}
						mu.Unlock()
						time.Sleep(trip / 2)
						return won, nil
					}, func() {})
					cancel()
					now := time.Now()
					mu.Lock()
					all.tries += tries
					all.gap = max(all.gap, now.Sub(last))
					switch {
					case err == nil:
						all.renewals++
						last = now
					case errors.Is(err, errBeaten), errors.Is(err, context.DeadlineExceeded):
						all.beaten++
					default:
						t.Error(err)
					}
					mu.Unlock()
					if tries > mostTries {
						t.Errorf("%d tries", tries)
					}
					time.Sleep(every - every/8 + time.Duration(random.Int64N(int64(every/4))))
				}
			})
		}
		running.Wait()
	})
	return all
}

// The figure of the most members of one value is that of the package comment. A lease that is not
// renewed in time is over.
func TestHowOftenMembersBeatEachOther(t *testing.T) {
	const lease = 3 * time.Second
	for _, c := range []struct {
		members int
		most    float64 // tries for each renewal
	}{
		{10, 1.1},
		{budget.MostAlone, 1.2},
	} {
		got := contend(t, c.members, lease, 4)
		tries := float64(got.tries) / float64(got.renewals)
		t.Logf("%4d members: %.2f tries for each renewal, %.1f %% of attempts beaten, the longest without a renewal %.2f leases",
			c.members, tries, 100*float64(got.beaten)/float64(got.beaten+got.renewals), got.gap.Seconds()/lease.Seconds())
		if tries > c.most || got.gap >= lease {
			t.Errorf("%d members: %+v", c.members, got)
		}
	}
}

func TestWhoIsBeatenTooOftenSaysWhatToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		beaten := 0
		never := func(context.Context) (bool, error) { return false, nil }
		if err := compete(t.Context(), 3*time.Second, never, func() { beaten++ }); !errors.Is(err, errBeaten) || beaten != mostTries {
			t.Errorf("%v after %d", err, beaten)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := compete(ctx, time.Hour, never, func() {}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		broken := errors.New("broken")
		if err := compete(t.Context(), time.Second, func(context.Context) (bool, error) { return false, broken }, nil); err != broken {
			t.Error(err)
		}
	})
}
