package limiter

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/internal/places"
	"github.com/spillway-go/spillway/internal/priority"
	"github.com/spillway-go/spillway/internal/refusal"
)

// memos repeat a rejection without the lock: until the gate sees anything but a
// rejection, an equal arrival gets an equal rejection. Under overload nearly all
// arrivals are rejected, and rejections must not slow down admitted work. Each
// repeated decision is the decision that the gate would make.
type memos struct {
	live  atomic.Bool // some memo is valid; set under the limiter's lock, which guards all non-atomic fields
	dirty bool        // some memo may have been used since the last fold
	// kept is nil until the first memo or expectation. It is set before live, or the caller's own sign for an
	// expectation, so that who sees the sign sees kept without the lock.
	*kept
}

// kept is what memos keep.
type kept struct {
	of     [priority.Levels][2]memo
	used   uint64   // bit set of the counts in use: by level, then reason
	_      [64]byte // separates fields that all callers read from fields that all callers write
	count  [priority.Levels * reasons]atomic.Uint64
	folded [priority.Levels * reasons]uint64 // part of count that the gate knows
	keys   askedFor
}

// askedFor counts the repeated rejections by the key of the work, since the last fold. Keys without a name
// have the first places, and the others share the rest.
type askedFor struct {
	used  [2]atomic.Uint64 // bit set of the entries of count that may be above zero
	count [places.Derived + mostNames]atomic.Uint32
	named [mostNames]atomic.Uint64 // keys of work with a named kind; zero: free
}

const mostNames = 32

// A bit of kept.used stands for a level and a reason.
const _ uint = 64 - priority.Levels*reasons

func (k *askedFor) add(key places.Key) {
	i := k.place(key)
	k.count[i].Add(1)
	if used, bit := &k.used[i/64], uint64(1)<<(i%64); used.Load()&bit == 0 {
		used.Or(bit)
	}
}

// place returns where a key is counted. If many names leave no room, a key is counted without its name. A
// rejection during a fold may be counted for another kind.
func (k *askedFor) place(key places.Key) int {
	if key.Named() {
		first := int(key.Spread() % mostNames)
		for _, i := range [...]int{first, first ^ 1} {
			if k.named[i].Load() == uint64(key) || k.named[i].CompareAndSwap(0, uint64(key)) {
				return places.Derived + i
			}
		}
	}
	return int(key.Unnamed())
}

// fold moves the counts to the gate. The caller holds the lock.
func (k *askedFor) fold(g *gate.Gate) {
	for w := range k.used {
		if k.used[w].Load() == 0 {
			continue
		}
		for left := k.used[w].Swap(0); left != 0; left &= left - 1 {
			i := 64*w + bits.TrailingZeros64(left)
			n, key := k.count[i].Swap(0), places.Key(i)
			if i >= places.Derived {
				key = places.Key(k.named[i-places.Derived].Swap(0))
			}
			if n > 0 && (key.Named() || i < places.Derived) {
				g.RepeatedOf(key, uint64(n))
			}
		}
	}
}

// memo is a rejection to repeat. Its fields are written while version is even,
// and valid while version is odd and does not change.
type memo struct {
	version atomic.Uint32
	until   atomic.Int64 // when the memo expires
	needs   atomic.Int64 // least time left, for work with a deadline
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

// repeat returns and counts the known rejection for an arrival of cost one. Nil means
// that the gate must decide.
func (m *memos) repeat(now time.Duration, a *gate.Arrival, mayWait bool) *spillway.Rejection {
	lv, kept := priority.Level(a.Priority), m.kept // read once
	k := &kept.of[lv][which(mayWait)]
	version := k.version.Load()
	if version&1 == 0 || now >= time.Duration(k.until.Load()) || int64(a.Deadline-now) < k.needs.Load() {
		return nil
	}
	row, advice := k.row.Load(), time.Duration(k.advice.Load())
	if k.version.Load() != version {
		return nil
	}
	kept.keys.add(gate.Key(now, a))
	return row.Near(advice, kept.count[lv*reasons+int(row.Reason())].Add(1))
}

// refuse counts and returns the limiter's own refusal of an arrival. The caller needs no lock, but
// expect was called for the reason before.
func (m *memos) refuse(now time.Duration, a *gate.Arrival, reason spillway.Reason, advice time.Duration) *spillway.Rejection {
	m.keys.add(gate.Key(now, a))
	return refusal.Of(reason).Near(advice, m.count[priority.Level(a.Priority)*reasons+int(reason)].Add(1))
}

// begin is called before the first change of m.kept. The caller holds the lock.
func (m *memos) begin() {
	if m.kept == nil {
		m.kept = &kept{}
	}
}

// expect prepares refuse for a reason. The caller holds the lock.
func (m *memos) expect(reason spillway.Reason) {
	m.begin()
	for lv := range priority.Levels {
		m.used |= 1 << (lv*reasons + int(reason))
	}
	m.dirty = true
}

// keep stores a rejection that the gate just made, until the time most at the latest.
func (m *memos) keep(g *gate.Gate, a gate.Arrival, d gate.Decision, mayWait bool, advice, most time.Duration, row *refusal.Row) {
	until, needs, ok := g.Repeats(a, d, mayWait)
	if !ok || row.Reason() >= reasons {
		return
	}
	m.begin()
	k := &m.of[priority.Level(a.Priority)][which(mayWait)]
	if k.version.Load()&1 == 1 {
		k.version.Add(1)
	}
	k.until.Store(int64(min(until, most)))
	k.needs.Store(int64(needs))
	k.advice.Store(int64(advice))
	k.row.Store(row)
	k.version.Add(1)
	m.used |= 1 << (priority.Level(a.Priority)*reasons + int(row.Reason()))
	m.live.Store(true)
	m.dirty = true
}

// fold adds the repeated rejections to the counts of the gate. A rejection that is being
// counted at the same time is added by the next fold.
func (m *memos) fold(g *gate.Gate) {
	if m.kept == nil {
		return
	}
	m.dirty = m.live.Load()
	for left := m.used; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(left)
		if n := m.count[i].Load() - m.folded[i]; n > 0 {
			m.folded[i] += n
			g.Repeated(priority.Of(i/reasons), spillway.Reason(i%reasons), n)
			m.dirty = true
		}
	}
	m.keys.fold(g)
}

// forget invalidates all memos.
func (m *memos) forget() {
	for lv := range m.of {
		for i := range m.of[lv] {
			if k := &m.of[lv][i]; k.version.Load()&1 == 1 {
				k.version.Add(1)
			}
		}
	}
	m.live.Store(false)
}
