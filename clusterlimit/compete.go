package clusterlimit

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// errBeaten means that this member lost all its tries.
var errBeaten = errors.New("others changed the budget first, too often: too many members renew at a time, so give the budget a longer Config.Lease, or groups of replicas budgets of their own")

// The tries of one attempt. After a lost try the member waits for a random time before the next
// try. The bound of the random time doubles, so that members that started together spread out.
const (
	mostTries  = 8
	firstPause = 2 * time.Millisecond
	pauses     = 24 // the longest pause is a lease divided by pauses
)

// compete calls try until a try wins or fails, or mostTries tries have lost.
func compete(ctx context.Context, lease time.Duration, try func(context.Context) (won bool, err error), beaten func()) error {
	for n := range mostTries {
		won, err := try(ctx)
		if won || err != nil {
			return err
		}
		beaten()
		if n == mostTries-1 {
			break // the next renewal comes soon
		}
		if err := sleep(ctx, 1+rand.N(min(firstPause<<n, lease/pauses))); err != nil {
			return err
		}
	}
	return errBeaten
}
