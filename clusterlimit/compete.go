package clusterlimit

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// errBeaten means that this member lost all its tries.
var errBeaten = errors.New("the engine answers, but other members changed the budget first, too often: many join or renew at a time, the engine is slow, or its cluster has lost its majority")

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
		if err := sleep(ctx, jitter(n, lease)); err != nil {
			return err
		}
	}
	return errBeaten
}

// jitter returns the pause after the n-th lost try.
func jitter(n int, lease time.Duration) time.Duration {
	return 1 + rand.N(min(firstPause<<min(n, mostTries), lease/pauses))
}
