package fanout

import (
	"fmt"
	"runtime"
	"sync/atomic"
)

// Budget bounds the number of goroutines that run branches or elements beside their callers. Share
// a Budget between several Fanouts and Maps to bound them together. No call waits for a token:
// without a token, the work runs in the caller, so nested calls neither explode nor deadlock. A
// Budget is safe for concurrent use. Create it with NewBudget; New and Map reject the zero Budget.
type Budget struct {
	size int64
	used atomic.Int64
}

const (
	budgetPerProc = 256
	maxBudget     = 1 << 30
)

// NewBudget returns a budget of n goroutines. Zero means 256 per processor (GOMAXPROCS): enough for
// waiting branches to wait concurrently, at a cost of some MB.
func NewBudget(n int) (*Budget, error) {
	if n < 0 || n > maxBudget {
		return nil, fmt.Errorf("fanout: a budget of %d goroutines: use 1 to %d (zero means %d for each processor)", n, maxBudget, budgetPerProc)
	}
	if n == 0 {
		n = budgetPerProc * runtime.GOMAXPROCS(0)
	}
	return &Budget{size: int64(n)}, nil
}

// Size returns the maximum number of goroutines.
func (b *Budget) Size() int { return int(b.size) }

// InUse returns the number of goroutines in use now.
func (b *Budget) InUse() int { return int(b.used.Load()) }

const useNewBudget = "the Budget is a zero value: use NewBudget"

// isZero reports a Budget that NewBudget did not make. A nil Budget is fine.
func (b *Budget) isZero() bool { return b != nil && b.size == 0 }

// take takes a token if one is free, and reports whether it did.
func (b *Budget) take() bool {
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

func (b *Budget) give() { b.used.Add(-1) }
