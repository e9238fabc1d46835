package fanout

import (
	"fmt"
	"runtime"
	"sync/atomic"
)

// Budget bounds how many goroutines run branches or elements beside their
// callers. Share one between values to bound them together. No call waits for a
// token: without one, the work runs in the caller, so that nested calls neither
// explode nor deadlock. It is safe for concurrent use. Create it with NewBudget;
// New and Map refuse the zero Budget.
type Budget struct {
	size int64
	used atomic.Int64
}

const (
	budgetPerProc = 256
	maxBudget     = 1 << 30
)

// NewBudget returns a budget of n goroutines. Zero means 256 for each processor
// (GOMAXPROCS): enough that branches which wait do so at once, and some MB.
func NewBudget(n int) (*Budget, error) {
	if n < 0 || n > maxBudget {
		return nil, fmt.Errorf("fanout: a budget of %d goroutines: use 1 to %d (zero means %d for each processor)", n, maxBudget, budgetPerProc)
	}
	if n == 0 {
		n = budgetPerProc * runtime.GOMAXPROCS(0)
	}
	return &Budget{size: int64(n)}, nil
}

// Size returns how many goroutines there may be.
func (b *Budget) Size() int { return int(b.size) }

// InUse returns how many there are.
func (b *Budget) InUse() int { return int(b.used.Load()) }

const useNewBudget = "the Budget is a zero value: use NewBudget"

// unmade reports a Budget that NewBudget did not make. Nil is none at all.
func (b *Budget) unmade() bool { return b != nil && b.size == 0 }

// take takes a token, if there is one.
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
