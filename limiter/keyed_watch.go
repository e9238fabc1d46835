package limiter

import (
	"iter"
	"slices"
	"sync"
	"weak"
)

// KeyedWatch sees every limiter of a family once: All yields those that are there, and
// the function that Keyed.Watch was given is called with each one that has left. It is
// safe for concurrent use. The family keeps no KeyedWatch that nobody else has.
type KeyedWatch struct {
	family  *Keyed
	evicted func(key string, l *Limiter)

	turn sync.Mutex // held by what tells evicted, and by All
	gone []*keyed   // left the family, and evicted is not told; guarded by the family's lock
}

// mostGone is how many limiters that have left wait for a reader, before a caller that
// needs a new one tells of them.
const mostGone = 8

// Watch returns a KeyedWatch of the limiters that are there now and of those to come.
// For each one that leaves the family evicted is called, one call at a time: by All, or by
// a caller of the family that uses a new key, outside of the family's lock. The limiter has
// no work any more, and what it has counted stays. It differs from a later one of the
// same key, and the pointer tells which one it is.
func (k *Keyed) Watch(evicted func(key string, l *Limiter)) *KeyedWatch {
	if evicted == nil {
		panic("limiter: Watch needs a function")
	}
	w := &KeyedWatch{family: k, evicted: evicted}
	k.lock()
	defer k.mu.Unlock()
	k.watches = append(k.watches, weak.Make(w))
	return w
}

// All yields the key and the limiter of every member that is there now, the shared one
// under Overflow. Before, evicted is called with those that have left since the last time;
// during the loop it is not called. A loop inside of the loop would wait for itself.
func (w *KeyedWatch) All() iter.Seq2[string, *Limiter] {
	return func(yield func(string, *Limiter) bool) {
		w.turn.Lock()
		defer w.turn.Unlock()
		w.family.lock()
		all, gone := w.family.all(), w.gone // of one instant: each limiter is in one of the two
		w.gone = nil
		w.family.mu.Unlock()
		w.tell(gone)
		for _, m := range all {
			if !yield(m.key, m.lim) {
				return
			}
		}
	}
}

// tell calls evicted, in turn. If that panics the rest is told later.
func (w *KeyedWatch) tell(gone []*keyed) {
	defer func() {
		if len(gone) > 0 {
			w.family.lock()
			w.gone = append(gone, w.gone...)
			w.family.mu.Unlock()
		}
	}()
	for len(gone) > 0 {
		m := gone[0]
		gone = gone[1:]
		w.evicted(m.key, m.lim)
	}
}

// left notes for all watches that m has left. The family is locked.
func (k *Keyed) left(m *keyed) {
	k.watches = slices.DeleteFunc(k.watches, func(p weak.Pointer[KeyedWatch]) bool {
		w := p.Value()
		if w != nil {
			w.gone = append(w.gone, m)
		}
		return w == nil
	})
}

// behind returns the watches that should be told of what has left. The family is locked.
func (k *Keyed) behind() (all []*KeyedWatch) {
	for _, p := range k.watches {
		if w := p.Value(); w != nil && len(w.gone) >= mostGone {
			all = append(all, w)
		}
	}
	return all
}

// catchUp tells of what has left, unless another goroutine is about to.
func (w *KeyedWatch) catchUp() {
	if !w.turn.TryLock() {
		return
	}
	defer w.turn.Unlock()
	w.family.lock()
	gone := w.gone
	w.gone = nil
	w.family.mu.Unlock()
	w.tell(gone)
}
