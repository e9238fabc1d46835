package limiter

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/internal/places"
	"github.com/spillway-go/spillway/internal/refusal"
)

// memos repeat a rejection without the lock: until the gate sees anything but a
// rejection, the same question has the same answer. Under overload nearly all
// arrivals are such, and they must not slow down the work that was admitted.
// Decisions are those of the gate, one for one.
type memos struct {
	live   bool // some memo is valid; under the limiter's lock, like all that is not atomic
	dirty  bool // some may have been used since they were folded
	of     [gate.Levels][2]memo
	used   uint64   // which counts were, as bits: by level, then reason
	_      [64]byte // what all callers read apart from what all callers write
	count  [gate.Levels * reasons]atomic.Uint64
	folded [gate.Levels * reasons]uint64 // of count, entered into the gate
	keys   askedFor
}

// askedFor counts the repeated rejections by what was asked for.
type askedFor struct {
	used      atomic.Uint64                 // which have been above zero, as bits
	usedTold  atomic.Uint32                 // which of told are above zero
	count     [places.Derived]atomic.Uint32 // until they are folded, as all here
	told      [32]atomic.Uint64             // keys of kinds that were told; zero: free
	countTold [32]atomic.Uint32
}

func (k *askedFor) add(key places.Key) {
	if key.Told() && k.addTold(key) {
		return
	}
	i := key.Untold()
	k.count[i].Add(1)
	if bit := uint64(1) << i; k.used.Load()&bit == 0 {
		k.used.Or(bit)
	}
}

// addTold counts one of a kind that was told. False: there is no room, because there are
// many names, and it counts as not told. One that comes while all are folded may count
// for another kind.
func (k *askedFor) addTold(key places.Key) bool {
	i := key.Spread() % places.Key(len(k.told))
	if k.told[i].Load() != uint64(key) && !k.told[i].CompareAndSwap(0, uint64(key)) {
		i ^= 1
		if k.told[i].Load() != uint64(key) && !k.told[i].CompareAndSwap(0, uint64(key)) {
			return false
		}
	}
	k.countTold[i].Add(1)
	if bit := uint32(1) << i; k.usedTold.Load()&bit == 0 {
		k.usedTold.Or(bit)
	}
	return true
}

// fold enters them into the gate. The caller holds the lock.
func (k *askedFor) fold(g *gate.Gate) {
	for left := k.used.Load(); left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(left)
		if k.count[i].Load() > 0 {
			g.RepeatedOf(places.Key(i), uint64(k.count[i].Swap(0)))
		}
	}
	if k.usedTold.Load() == 0 {
		return
	}
	for left := k.usedTold.Swap(0); left != 0; left &= left - 1 {
		i := bits.TrailingZeros32(left)
		n := k.countTold[i].Swap(0)
		if key := k.told[i].Swap(0); key != 0 {
			g.RepeatedOf(places.Key(key), uint64(n))
		}
	}
}

// memo is a rejection to repeat. Its fields are written while version is even,
// and valid while it is odd and does not change.
type memo struct {
	version atomic.Uint32
	until   atomic.Int64 // and not longer
	needs   atomic.Int64 // time left, for work with a deadline
	advice  atomic.Int64
	row     atomic.Pointer[refusal.Row]
}

const reasons = refusal.Reasons

func which(mayWait bool) int {
	if mayWait {
		return 1
	}
	return 0
}

// repeat returns the answer to an arrival of cost one, if it is known, and counts
// it; nil means: ask the gate.
func (m *memos) repeat(now time.Duration, a *gate.Arrival, mayWait bool) *spillway.Rejection {
	lv := gate.Level(a.Priority)
	k := &m.of[lv][which(mayWait)]
	version := k.version.Load()
	if version&1 == 0 || now >= time.Duration(k.until.Load()) || int64(a.Deadline-now) < k.needs.Load() {
		return nil
	}
	row, advice := k.row.Load(), time.Duration(k.advice.Load())
	if k.version.Load() != version {
		return nil
	}
	m.keys.add(gate.Key(now, a))
	return row.Near(advice, m.count[lv*reasons+int(row.Reason())].Add(1))
}

// keep remembers a rejection that the gate just gave.
func (m *memos) keep(g *gate.Gate, a gate.Arrival, d gate.Decision, mayWait bool, advice time.Duration, row *refusal.Row) {
	until, needs, ok := g.Repeats(a, d, mayWait)
	if !ok || row.Reason() >= reasons {
		return
	}
	k := &m.of[gate.Level(a.Priority)][which(mayWait)]
	if k.version.Load()&1 == 1 {
		k.version.Add(1)
	}
	k.until.Store(int64(until))
	k.needs.Store(int64(needs))
	k.advice.Store(int64(advice))
	k.row.Store(row)
	k.version.Add(1)
	m.used |= 1 << (gate.Level(a.Priority)*reasons + int(row.Reason()))
	m.live, m.dirty = true, true
}

// fold enters the rejections that were repeated into the gate. One that is just
// about to be counted is entered next time.
func (m *memos) fold(g *gate.Gate) {
	m.dirty = m.live
	for left := m.used; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(left)
		if n := m.count[i].Load() - m.folded[i]; n > 0 {
			m.folded[i] += n
			g.Repeated(spillway.Critical-spillway.Priority(i/reasons), spillway.Reason(i%reasons), n)
			m.dirty = true
		}
	}
	m.keys.fold(g)
}

// forget ends all memos.
func (m *memos) forget() {
	for lv := range m.of {
		for i := range m.of[lv] {
			if k := &m.of[lv][i]; k.version.Load()&1 == 1 {
				k.version.Add(1)
			}
		}
	}
	m.live = false
}
