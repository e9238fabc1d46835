package limiter

import (
	"iter"
	"slices"
	"sync"
	"weak"
)

// keyedWatch sees every limiter of a family. all yields the current limiters, and the
// function passed to Keyed.watch is called once with each limiter that has left. A
// keyedWatch is safe for concurrent use. The family has only a weak reference to a
// keyedWatch.
type keyedWatch struct {
	family  *Keyed
	evicted func(key string, l *Limiter)

	serial sync.Mutex // held during calls of evicted and during all
	gone   []*keyed   // left the family, not yet passed to evicted; guarded by the family's lock
}

// mostGone is the length of keyedWatch.gone from which on a caller that needs a new limiter
// passes gone to evicted. Below mostGone, all does so.
const mostGone = 8

// watch is inside.Keyed.Watch. watch.all is the sequence.
func (k *Keyed) watch(evicted func(key string, l *Limiter)) *keyedWatch {
	w := &keyedWatch{family: k, evicted: evicted}
	k.lock()
	defer k.mu.Unlock()
	k.watches = append(k.watches, weak.Make(w))
	return w
}

// all yields the key and the limiter of every current member. Before the loop, all calls
// evicted with the limiters that have left since the last call; evicted is not called during
// the loop.
func (w *keyedWatch) all() iter.Seq2[string, *Limiter] {
	return func(yield func(string, *Limiter) bool) {
		w.serial.Lock()
		defer w.serial.Unlock()
		w.family.lock()
		all, gone := w.family.all(), w.gone // one snapshot: each limiter is in all or in gone
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

// tell calls evicted with each member of gone. If evicted panics, the rest stays for a later
// call. The caller holds serial.
func (w *keyedWatch) tell(gone []*keyed) {
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

// left adds m to gone of all watches, and removes watches that were garbage collected. The
// caller holds the family's lock.
func (k *Keyed) left(m *keyed) {
	k.watches = slices.DeleteFunc(k.watches, func(p weak.Pointer[keyedWatch]) bool {
		w := p.Value()
		if w != nil {
			w.gone = append(w.gone, m)
		}
		return w == nil
	})
}

// behind returns the watches with mostGone or more members in gone. The caller holds the
// family's lock.
func (k *Keyed) behind() (all []*keyedWatch) {
	for _, p := range k.watches {
		if w := p.Value(); w != nil && len(w.gone) >= mostGone {
			all = append(all, w)
		}
	}
	return all
}

// catchUp passes gone to evicted, unless another goroutine holds serial.
func (w *keyedWatch) catchUp() {
	if !w.serial.TryLock() {
		return
	}
	defer w.serial.Unlock()
	w.family.lock()
	gone := w.gone
	w.gone = nil
	w.family.mu.Unlock()
	w.tell(gone)
}
