//go:build !gc || race || go1.28

package objectpool

import (
	"sync"
	"unsafe"
)

// claim is held while its local is used.
type claim struct{ mu sync.Mutex }

// enter locks a local, until leave, and returns its index. Goroutines choose by the address of
// their stack, which keeps most concurrent goroutines apart.
func (t *tier[T]) enter() int {
	var onStack byte
	i := int(uint64(uintptr(unsafe.Pointer(&onStack))>>11) * 0x9E3779B97F4A7C15 >> 32 % uint64(len(t.locals)))
	t.locals[i].mu.Lock()
	return i
}

func (t *tier[T]) leave(i int) { t.locals[i].mu.Unlock() }

func (t *tier[T]) inspect(i int, f func()) {
	t.locals[i].mu.Lock()
	defer t.locals[i].mu.Unlock()
	f()
}
