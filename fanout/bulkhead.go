package fanout

import (
	"fmt"
	"runtime"
	"sync/atomic"
)

// Bulkhead bounds the number of goroutines that run branches or elements beside their callers. Share
// a Bulkhead between several Fanouts and Maps to bound them together. No call waits for a token:
// without a token, the work runs in the caller, so nested calls neither explode nor deadlock. A
// Bulkhead is safe for concurrent use. Create it with NewBulkhead; New and Map reject the zero Bulkhead.
type Bulkhead struct {
	size int64
	used atomic.Int64
}

const (
	bulkheadPerProc = 256
	maxBulkhead     = 1 << 30
)

// NewBulkhead returns a bulkhead of n goroutines. Zero means 256 per processor (GOMAXPROCS): enough for
// waiting branches to wait concurrently, at a cost of some MB.
func NewBulkhead(n int) (*Bulkhead, error) {
	if n < 0 || n > maxBulkhead {
		return nil, fmt.Errorf("fanout: a bulkhead of %d goroutines: use 1 to %d (zero means %d for each processor)", n, maxBulkhead, bulkheadPerProc)
	}
	if n == 0 {
		n = bulkheadPerProc * runtime.GOMAXPROCS(0)
	}
	return &Bulkhead{size: int64(n)}, nil
}

// InUse returns the number of goroutines in use now.
func (b *Bulkhead) InUse() int { return int(b.used.Load()) }

const useNewBulkhead = "the Bulkhead is a zero value: use NewBulkhead"

// isZero reports a Bulkhead that NewBulkhead did not make. A nil Bulkhead is fine.
func (b *Bulkhead) isZero() bool { return b != nil && b.size == 0 }

// take takes a token if one is free, and reports whether it did.
func (b *Bulkhead) take() bool {
	for {
		used := b.used.Load()
		if used >= b.size {
			return false
		}
		if b.used.CompareAndSwap(used, used+1) {
			return true
		}
	}
}

func (b *Bulkhead) give() { b.used.Add(-1) }
