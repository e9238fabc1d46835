package clusterlimit

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// errBeaten says that this member lost all its tries.
var errBeaten = errors.New("others changed the budget first, too often: too many members renew at a time, so give the budget a longer Config.Lease, or groups of replicas budgets of their own")

// The tries of one attempt. After one that was beaten the next waits for a random time, up to
// one that doubles, so that members that came together are spread out.
const (
	mostTries  = 8
	firstPause = 2 * time.Millisecond
	pauses     = 24 // the longest, in the time of a lease
)

// compete calls try until it has won, has failed, or was beaten mostTries times.
func compete(ctx context.Context, lease time.Duration, try func(context.Context) (won bool, err error), beaten func()) error {
	for n := range mostTries {
		won, err := try(ctx)
		if won || err != nil {
			return err
		}
		beaten()
		if n == mostTries-1 {
			break // it comes again soon
		}
		if err := sleep(ctx, 1+rand.N(min(firstPause<<n, lease/pauses))); err != nil {
			return err
		}
	}
	return errBeaten
}
