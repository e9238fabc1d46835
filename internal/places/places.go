// Package places gives kinds of work their places among the few that a gate or a pool
// and their law tell apart (limit.Classes). What a kind is called is told by its owner, or
// derived from the priority of the work and the time that it has. Names may be made up
// without end; places and memory do not grow with them.
package places

import (
	"hash/maphash"
	"math"
	"time"

	"github.com/spillway-go/spillway/limit"
)

// Key says all that is told of a piece of work: a hash of the name of its kind, 0 for
// none, above its level and its scale.
type Key uint64

// Name is the hash of a name; 0: none was told.
type Name uint64

const (
	Levels = 4  // of priority, 0 the most important
	Scales = 16 // orders of magnitude of the time that work has, powers of two about a second; the last is that of work without a deadline

	Derived = Levels * Scales // keys without a name; they are below it

	shortest = -4 // 2^-4 s and less are one scale
	never    = time.Duration(math.MaxInt64)
	toldBit  = 1 << 57
)

// Key returns the key of work.
func (n Name) Key(level, scale int) Key { return Key(n)*Derived + Key(level*Scales+scale) }

// Told reports whether a name was told.
func (k Key) Told() bool { return k >= Derived }

// Level is the level of the work.
func (k Key) Level() int { return int(k / Scales % Levels) }

// Scale is the order of magnitude of the time that the work has.
func (k Key) Scale() int { return int(k % Scales) }

// Untold is the key of the work without its name.
func (k Key) Untold() Key { return k % Derived }

// named is the key of all work of the name and the level, if there is a name.
func (k Key) named() Key {
	if k.Told() {
		k -= k % Scales
	}
	return k
}

// Spread is a number that differs where names do, also in the lowest bits.
func (k Key) Spread() Key { return k / Derived }

// bits differ where levels, scales or names do.
func (k Key) bits() Key { return k ^ k.Spread()*Scales ^ k.Spread() }

// Scale is the order of magnitude of the time that work has when it arrives.
func Scale(left time.Duration) int {
	switch {
	case left == never:
		return Scales - 1
	case left <= 0: // its deadline has passed
		return 0
	}
	const one = 1023 // of a float's exponent
	nearest := int(math.Float64bits(float64(left)*(math.Sqrt2/1e9))>>52) - one
	return min(max(nearest-shortest, 0), Scales-2)
}

// Time is about how long work of a scale has, in nanoseconds; 0: it has no deadline.
func Time(scale int) float64 {
	if scale == Scales-1 {
		return 0
	}
	return float64(time.Second) * math.Exp2(float64(scale+shortest))
}

// Table says which kind has which place. A derived kind keeps its place, and those that
// come later share the last of their level. A told kind has a place, as long as one is
// free, from the first of its work on. When none is free it shares the derived kind of its
// level and scale, until it is clearly more of the latest work than the told kind that is
// least of it, whose place it then takes. New makes a table.
type Table struct {
	seed   maphash.Seed
	last   [32]uint8 // where a kind was found last, by bits of its key: a place, or with inRest an index of rest
	places []use
	free   int8  // places that any kind may take: one is kept for a derived kind of each level
	next   uint8 // in rest, where a new one looks first
	rest   []use // told kinds that have no place, some of the latest; empty while places are free
}

// use is how much work of a kind there is.
type use struct {
	key   Key     // without scale, if it is told
	fresh float64 // that arrived since the last Renew, in a place also of kinds that share it
	share float64 // of the latest work, until then
}

const (
	// Span is of how much of the latest work a share is.
	Span = 1000.0
	// Rare is the share of a kind that the others need not care for.
	Rare = 0.01

	most        = limit.Classes
	mostDerived = 12
	clearly     = 2  // times as much
	mostRest    = 16 // of one in a hundred the next comes, now and then, before so many that are seen once
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

// Find returns the place of work of which n pieces arrived, which is at most one more than
// there were before.
func (t *Table) Find(k Key, n float64) uint8 {
	at, ok := t.Again(k, n)
	if !ok {
		at = t.search(k, n)
		t.places[at].fresh += n
	}
	return at
}

// Again is Find for a kind that was found lately. Otherwise it returns false, and counts
// nothing.
func (t *Table) Again(k Key, n float64) (at uint8, ok bool) {
	k = k.named()
	at = *t.found(k)
	if ok = int(at) < len(t.places) && t.places[at].key == k; ok {
		t.places[at].fresh += n
	}
	return at, ok
}

// found is where it is noted where a kind was found.
func (t *Table) found(k Key) *uint8 { return &t.last[k.bits()%Key(len(t.last))] }

// search finds the place of a kind that was not found lately. Work of a told kind that has
// none is counted in rest too.
func (t *Table) search(k Key, n float64) uint8 {
	if !k.Told() {
		at := t.derive(k)
		*t.found(k) = at
		return at
	}
	k, untold := k.named(), k.Untold()
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

// Key returns the key of the kind in a place: of a told one without scale.
func (t *Table) Key(at uint8) Key { return t.places[at].key }

// derive finds a place for a derived kind.
func (t *Table) derive(k Key) uint8 {
	last, count := -1, 0
	for i := range t.places {
		if of := t.places[i].key; of == k {
			return uint8(i)
		} else if !of.Told() {
			count++
			if of.Level() == k.Level() {
				last = i
			}
		}
	}
	switch {
	case last < 0: // its own was kept for it
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

// wait is the index in rest of a told kind that has no place. A new one goes where the
// least was seen, and of those that were seen once where that was longest ago.
func (t *Table) wait(k Key) int {
	if t.rest == nil {
		t.rest = make([]use, mostRest)
	}
	if i := index(t.rest, k); i >= 0 {
		return i
	}
	least := int(t.next)
	for i := range mostRest {
		i = (int(t.next) + i) % mostRest
		seen := t.rest[i].seen()
		if seen < t.rest[least].seen() {
			least = i
		}
		if seen <= 1 {
			break
		}
	}
	t.rest[least] = use{key: k}
	t.next = uint8(least+1) % mostRest
	return least
}

// seen is how much of the latest work is of the kind.
func (u *use) seen() float64 { return u.share*Span + u.fresh }

// Renew enters what has arrived since the last time, and gives the places of told kinds
// that are least of the latest work to those that are clearly more of it. Places that are
// busy, as bits, are kept: work that is there is of the kind that had the place when it
// arrived. Renew returns the places that are now of another kind, as bits.
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
		at, from := t.least(busy), 0
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

// least is the place of the told kind that is least of the latest work, or -1.
func (t *Table) least(busy uint32) int {
	at := -1
	for i := range t.places {
		if u := &t.places[i]; u.key.Told() && busy>>i&1 == 0 && (at < 0 || u.share < t.places[at].share) {
			at = i
		}
	}
	return at
}
