package loadgen

import (
	"context"
	"fmt"
	"time"
)

// Share is one process's part of a load that several processes send together. All processes run the
// same Config; Of is their number, and Index, from 0 to Of-1, tells them apart. A process sends
// every request n with n mod Of = Index, under the number n. So all shares together send the same
// requests as one process. In a closed loop the clients are divided in the same way. The zero Share
// is the whole load.
//
// Give all processes the same [Config.Begin], and add up their results with [Merge].
type Share struct{ Index, Of int }

func (s Share) check() error {
	if s != (Share{}) && (s.Of < 1 || s.Index < 0 || s.Index >= s.Of) {
		return fmt.Errorf("loadgen: share %d of %d: want 0 to %d", s.Index, s.Of, max(s.Of-1, 0))
	}
	return nil
}

// has reports whether number n, of a request or a client, belongs to the share.
func (s Share) has(n uint64) bool { return s.Of < 2 || n%uint64(s.Of) == uint64(s.Index) }

// of returns the share of n equal things, at least 1.
func (s Share) of(n int) int {
	if s.Of < 2 {
		return n
	}
	part := n / s.Of
	if s.Index < n%s.Of {
		part++
	}
	return max(1, part)
}

// awaitBegin returns shortly before begin: the pacer and the clients wait for the rest.
func awaitBegin(ctx context.Context, begin time.Time) {
	left := time.Until(begin) - fineSpan
	if left <= 0 {
		return
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
