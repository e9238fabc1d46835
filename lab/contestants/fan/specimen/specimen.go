// Package specimen reproduces the faults of a published parallel lookup, in a few
// lines of our own, so that the lab can show their effect. DO NOT USE IT. The correct
// counterpart is package fanout.
//
// It is a data race by design. The race detector would stop the program before
// the fault shows, so tests of it are skipped under -race.
package specimen

import (
	"context"
	"sync"
)

// Lookup asks a database and, concurrently, caches for the same value. A should be a
// pointer, so that a racing reader sees an answer or none, never half of one.
type Lookup[Q, A, Merged any] struct {
	Database func(context.Context, Q) (A, error)
	Caches   []func(context.Context, Q) (A, error) // one, as published
	Merge    func(database A, caches []A) Merged
}

// Find is wrong in five ways. Its return value is computed before the deferred Wait,
// so it reads the answers of the caches while they may still be writing them, and
// drops those that are not there yet. If the database fails, it still waits for the
// caches. It cancels no branch. It drops the errors of caches. A panic in a cache ends
// the process.
func (l Lookup[Q, A, Merged]) Find(ctx context.Context, q Q) (Merged, error) {
	cached := make([]A, len(l.Caches))
	var wg sync.WaitGroup
	defer wg.Wait()
	for i, cache := range l.Caches {
		wg.Go(func() { cached[i], _ = cache(ctx, q) })
	}
	found, err := l.Database(ctx, q)
	if err != nil {
		return *new(Merged), err
	}
	return l.Merge(found, cached), nil
}
