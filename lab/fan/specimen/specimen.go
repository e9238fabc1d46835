// Package specimen keeps the faults of a published parallel lookup alive, in a
// few lines of our own, so that the lab can show what they do. NOTHING HERE IS TO
// BE USED. The sound counterpart is package fanout.
//
// It is a data race by design. The race detector would stop the program before
// the fault shows, so tests of it are skipped under -race.
package specimen

import (
	"context"
	"sync"
)

// Lookup asks a database and, beside it, caches for the same thing. A should be
// a pointer, so that a racing reader sees an answer or none, never half of one.
type Lookup[Q, A any] struct {
	Database func(context.Context, Q) (A, error)
	Caches   []func(context.Context, Q) (A, error) // one, as published
	Merge    func(database A, caches []A) A
}

// Find is wrong in five ways. The value that it returns is computed before the
// deferred Wait, so it reads what the caches answered while they may still be
// writing it, and drops what is not there yet. When the database has failed it
// waits for the caches all the same. Nobody is cancelled. A cache's error is
// seen by nobody. A panic in a cache ends the process.
func (l Lookup[Q, A]) Find(ctx context.Context, q Q, includeCache bool) (A, error) {
	cached := make([]A, len(l.Caches))
	var wg sync.WaitGroup
	defer wg.Wait()
	if includeCache {
		for i, cache := range l.Caches {
			wg.Go(func() { cached[i], _ = cache(ctx, q) })
		}
	}
	found, err := l.Database(ctx, q)
	if err != nil {
		var none A
		return none, err
	}
	return l.Merge(found, cached), nil
}
