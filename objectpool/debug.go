package objectpool

import (
	"fmt"
	"reflect"
	"runtime/debug"
	"sync"
)

// lookBack is how many of the latest Puts each Get checks for later changes.
const lookBack = 64

// ledger records every object of a pool in debug mode.
type ledger[T any] struct {
	mu    sync.Mutex
	out   map[*T][]byte // objects in use, with the stack of their Get
	freed []freed[T]
	index map[*T]int // position of an object in freed
}

// freed is an object that was put, with a copy of its cleared state and the stack of its Put. The
// copy shares the memory behind slices, maps and pointers with the object, so a change of this
// memory is not detected.
type freed[T any] struct {
	object *T
	was    T
	stack  []byte
}

func newLedger[T any]() *ledger[T] {
	return &ledger[T]{out: map[*T][]byte{}, index: map[*T]int{}}
}

// get records the new object t as handed out, after a check of the latest lookBack Puts.
func (l *ledger[T]) get(t *T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.freed[max(0, len(l.freed)-lookBack):] {
		if !reflect.DeepEqual(*f.object, f.was) {
			panic(fmt.Sprintf("objectpool: object %p was changed after Put, by whom it was put:\n%s", f.object, f.stack))
		}
	}
	l.out[t] = debug.Stack()
}

func (l *ledger[T]) put(t *T, clear func(*T)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i, twice := l.index[t]; twice {
		panic(fmt.Sprintf("objectpool: object %p was put twice; first by:\n%s", t, l.freed[i].stack))
	}
	if _, ours := l.out[t]; !ours {
		panic(fmt.Sprintf("objectpool: Put of %p, which this pool never gave", t))
	}
	delete(l.out, t)
	clear(t)
	l.index[t] = len(l.freed)
	l.freed = append(l.freed, freed[T]{t, *t, debug.Stack()})
}

func (l *ledger[T]) leaks() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var stacks []string
	for _, stack := range l.out {
		stacks = append(stacks, string(stack))
	}
	return stacks
}
