// Package places assigns kinds of work to the few places that a gate or a pool and its law
// distinguish (limit.Classes). The owner of work names its kind. Otherwise the kind is derived from
// the priority of the work and the time until its deadline. The number of names is unbounded;
// places and memory do not grow with it.
package places

import (
	"hash/maphash"
	"math"
	"time"

	"github.com/spillway-go/spillway/internal/priority"
	"github.com/spillway-go/spillway/limit"
)

// Key identifies the kind of a piece of work: a hash of the name of the kind, 0 for none, above the
// level and the scale.
type Key uint64

// Name is the hash of the name of a kind; 0: no name.
type Name uint64

const (
	Levels = priority.Levels // 0 is the most important
	// Scales is the number of orders of magnitude of the time until the deadline: powers of two
	// about a second. The last scale is for work without a deadline.
	Scales = 16

	Derived = Levels * Scales // number of keys without a name, which are the lowest

	shortest = -4 // exponent of the first scale: 2^-4 s and less
	never    = time.Duration(math.MaxInt64)
	toldBit  = 1 << 57
)

// Key returns the key of work with the name, level and scale.
func (n Name) Key(level, scale int) Key { return Key(n)*Derived + Key(level*Scales+scale) }

// Named reports whether the kind has a name.
func (k Key) Named() bool { return k >= Derived }

// Level is the level of the work.
func (k Key) Level() int { return int(k / Scales % Levels) }

// Scale is the order of magnitude of the time until the deadline of the work.
func (k Key) Scale() int { return int(k % Scales) }

// Unnamed is the key without the name.
func (k Key) Unnamed() Key { return k % Derived }

// named is the key without the scale, if it has a name: the key of all work of the name and the
// level.
func (k Key) named() Key {
	if k.Named() {
		k -= k % Scales
	}
	return k
}

// Spread is a number that differs between names, also in the lowest bits.
func (k Key) Spread() Key { return k / Derived }

// bits returns a value that differs between levels, scales or names.
func (k Key) bits() Key { return k ^ k.Spread()*Scales ^ k.Spread() }

// Scale is the order of magnitude of the time until the deadline.
func Scale(left time.Duration) int {
	switch {
	case left == never:
		return Scales - 1
	case left <= 0: // the deadline has passed
		return 0
	}
	const one = 1023 // bias of the exponent of a float64
	nearest := int(math.Float64bits(float64(left)*(math.Sqrt2/1e9))>>52) - one
	return min(max(nearest-shortest, 0), Scales-2)
}

// Time is the approximate time until the deadline for a scale, in nanoseconds; 0: no deadline.
func Time(scale int) float64 {
	if scale == Scales-1 {
		return 0
	}
	return float64(time.Second) * math.Exp2(float64(scale+shortest))
}

// Table maps kinds to places. A derived kind keeps its place. When places run out, new derived
// kinds share the last derived place of their level. A named kind gets a place with its first work,
// as long as a place is free. When none is free, the named kind shares the place of the derived
// kind of its level and scale. As soon as it is clearly more frequent than the least frequent named
// kind with a place, it takes the place of the latter. New returns a table.
type Table struct {
	seed   maphash.Seed
	last   [32]uint8 // cache of lookups, by bits of the key: a place, or an index of rest with inRest
	places []use
	free   int8  // free places for any kind; one more is kept for a derived kind of each level
	next   uint8 // index of rest where the search for an entry to replace begins
	rest   []use // some recent named kinds without a place; empty while places are free
}

// use is how frequent a kind is.
type use struct {
	key   Key     // of a named kind: without scale
	fresh float64 // arrivals since the last Renew; for a place, of all kinds that share it
	share float64 // share of recent work, up to the last Renew
}

const (
	// Span is the number of recent pieces of work behind a share.
	Span = 1000.0
	// Rare is the share below which other kinds may ignore a kind.
	Rare = 0.01

	most        = limit.Classes
	mostDerived = 12
	clearly     = 2  // ratio of shares from which a kind is clearly more frequent
	mostRest    = 16 // entries of rest: a kind with 1 % of the work can come again before kinds seen once replace it
	inRest      = 0x80
)

// New returns an empty table.
func New() Table { return Table{seed: maphash.MakeSeed(), free: most - Levels} }

// Name returns the hash of a name. It may be called at any time, by any goroutine.
func (t *Table) Name(name string) Name {
	if name == "" {
		return 0
	}
	return Name(maphash.String(t.seed, name)%toldBit | toldBit)
}

// Find counts n arrivals of a kind and returns its place. The place is at most the number of places
// before the call: a new place is the next one.
func (t *Table) Find(k Key, n float64) uint8 {
	at, ok := t.Again(k, n)
	if !ok {
		at = t.search(k, n)
		t.places[at].fresh += n
	}
	return at
}

// Again is Find for a kind in the lookup cache. For other kinds it returns false and counts
// nothing.
func (t *Table) Again(k Key, n float64) (at uint8, ok bool) {
	k = k.named()
	at = *t.found(k)
	if int(at) >= len(t.places) || t.places[at].key != k {
		return at, false
	}
	t.places[at].fresh += n
	return at, true
}

// found returns the entry of a kind in the lookup cache.
func (t *Table) found(k Key) *uint8 { return &t.last[k.bits()%Key(len(t.last))] }

// search finds the place of a kind that is not in the lookup cache. A named kind without a place is
// counted in rest too.
func (t *Table) search(k Key, n float64) uint8 {
	if !k.Named() {
		at := t.derive(k)
		*t.found(k) = at
		return at
	}
	k, untold := k.named(), k.Unnamed()
	found := t.found(k)
	i := int(*found) - inRest
	if i < 0 || i >= len(t.rest) || t.rest[i].key != k {
		if i = index(t.places, k); i < 0 && t.free > 0 {
			t.free--
			i = t.add(k)
		}
		if i >= 0 {
			*found = uint8(i)
			return *found
		}
		i = t.wait(k)
		*found = uint8(i | inRest)
	}
	t.rest[i].fresh += n
	at, ok := t.Again(untold, 0)
	if !ok {
		at = t.search(untold, n)
	}
	return at
}

// add gives a kind a place of its own.
func (t *Table) add(k Key) (at int) {
	t.places = append(t.places, use{key: k})
	return len(t.places) - 1
}

// Key returns the key of the kind in a place. The key of a named kind has no scale.
func (t *Table) Key(at uint8) Key { return t.places[at].key }

// derive finds a place for a derived kind.
func (t *Table) derive(k Key) uint8 {
	last, count := -1, 0
	for i := range t.places {
		if of := t.places[i].key; of == k {
			return uint8(i)
		} else if !of.Named() {
			count++
			if of.Level() == k.Level() {
				last = i
			}
		}
	}
	switch {
	case last < 0: // the place that is kept for the level
	case t.free > 0 && count < mostDerived:
		t.free--
	default:
		return uint8(last)
	}
	return uint8(t.add(k))
}

func index(of []use, k Key) int {
	for i := range of {
		if of[i].key == k {
			return i
		}
	}
	return -1
}

// wait returns the index in rest of a named kind without a place. A new kind replaces the kind that
// was seen least. Among kinds that were seen at most once, it replaces the oldest.
func (t *Table) wait(k Key) int {
	if t.rest == nil {
		t.rest = make([]use, mostRest)
	}
	if i := index(t.rest, k); i >= 0 {
		return i
	}
	lowest := int(t.next)
	for i := range mostRest {
		i = (int(t.next) + i) % mostRest
		seen := t.rest[i].seen()
		if seen < t.rest[lowest].seen() {
			lowest = i
		}
		if seen <= 1 {
			break
		}
	}
	t.rest[lowest] = use{key: k}
	t.next = uint8(lowest+1) % mostRest
	return lowest
}

// seen is the number of recent pieces of work of the kind.
func (u *use) seen() float64 { return u.share*Span + u.fresh }

// Renew updates the shares with the arrivals since the last call. It gives the places of the least
// frequent named kinds to kinds in rest that are clearly more frequent. Places in busy, as bits,
// are kept: work that waits or runs there is of the kind that had the place when the work arrived.
// Renew returns the places that changed their kind, as bits.
func (t *Table) Renew(busy uint32) (changed uint32) {
	n := 0.0
	for i := range t.places {
		n += t.places[i].fresh
	}
	if n == 0 {
		return 0
	}
	weight := 1 - math.Pow(1-1/Span, n)
	for _, some := range [...][]use{t.places, t.rest} {
		for i := range some {
			u := &some[i]
			u.share += weight * (u.fresh/n - u.share)
			u.fresh = 0
		}
	}
	for range t.rest {
		at, from := t.rarest(busy), 0
		for i := range t.rest {
			if t.rest[i].share > t.rest[from].share {
				from = i
			}
		}
		if at < 0 || t.rest[from].share < max(Rare, clearly*t.places[at].share) {
			break
		}
		t.places[at], t.rest[from] = t.rest[from], t.places[at]
		changed |= 1 << at
	}
	return changed
}

// rarest returns the place of the least frequent named kind that is not busy, or -1.
func (t *Table) rarest(busy uint32) int {
	at := -1
	for i := range t.places {
		if u := &t.places[i]; u.key.Named() && busy>>i&1 == 0 && (at < 0 || u.share < t.places[at].share) {
			at = i
		}
	}
	return at
}
