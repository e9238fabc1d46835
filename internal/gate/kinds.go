package gate

import (
	"cmp"
	"math"
	"math/bits"
	"time"

	"github.com/spillway-go/spillway/internal/places"
	"github.com/spillway-go/spillway/limit"
)

// kinds are the kinds of work that a gate tells apart, by their places. Work that says
// nothing about itself is of the kind of its priority and of the order of magnitude of its
// deadline: callers give a report more time than a lookup. Times of one kind are evidence
// about that kind only.
type kinds struct{ list []kind }

// Key is what the gate can tell of work that arrives: its priority, the order of magnitude
// of the time that it has, and what its kind is called.
func Key(now time.Duration, a *Arrival) places.Key {
	return a.Kind.Key(level(a.Priority), places.Scale(left(now, a.Deadline)))
}

// KindOf is what Arrival.Kind says for the name of a kind. It may be called at any time, by
// any goroutine.
func (g *Gate) KindOf(name string) places.Name { return g.places.Name(name) }

// kind is the kind of n pieces of work that arrive.
func (g *Gate) kind(key places.Key, n float64) uint8 {
	if g.follows {
		return g.owners
	}
	at := g.places.Find(key, n)
	if k := &g.service.kinds; int(at) == len(k.list) {
		k.list = append(k.list, newKind(g.places.Key(at)))
		if g.shadow != nil {
			other := &g.shadow.gate.service.kinds
			other.list = append(other.list, newKind(g.places.Key(at)))
		}
	}
	return at
}

// renew lets kinds that have become frequent take the places of those that have become
// rare, of which nothing is known from then on.
func (g *Gate) renew() {
	busy := g.service.kinds.busy()
	if g.shadow != nil {
		busy |= g.shadow.gate.service.kinds.busy()
	}
	for left := g.places.Renew(busy); left != 0; left &= left - 1 {
		at := bits.TrailingZeros32(left)
		g.service.kinds.list[at] = newKind(g.places.Key(uint8(at)))
		if f := g.limits.forgets; f != nil {
			f.Forget(uint8(at))
		}
		if g.shadow != nil {
			g.shadow.gate.service.kinds.list[at] = newKind(g.places.Key(uint8(at)))
			g.shadow.watch.Forget(uint8(at))
		}
	}
}

// busy are the places of the kinds of which some waits or runs, as bits.
func (k *kinds) busy() (all uint32) {
	for i := range k.list {
		if k.list[i].held > 0 {
			all |= 1 << i
		}
	}
	return all
}

// kind is what is known of how long one kind of work takes.
type kind struct {
	level int8
	told  bool  // what it is called
	held  int32 // how much of it waits or runs
	cost
	low, high float64       // about the 5 % and the 95 % quantile
	last      time.Duration // when one of it ended
	has       float64       // about the time that work of the kind has when it arrives, or of a told kind all but little of it; in nanoseconds, 0: no deadline
	times     scales        // of a told kind
	fresh     float64       // how much of it arrived since the last window
	arrived   float64       // how much of the latest work was of the kind
	stay      stay          // of callers that tell no deadline
	doubted   uint64        // how many would have been refused on this evidence
}

// scales counts work by the order of magnitude of the time that it has.
type scales [places.Scales]uint16

// newKind is a kind of which nothing is known.
func newKind(key places.Key) kind {
	k := kind{level: int8(key.Level()), told: key.Told()}
	if !k.told {
		k.has = places.Time(key.Scale())
	}
	return k
}

// add enters n pieces of work.
func (s *scales) add(scale int, n uint64) {
	s[scale] += uint16(min(n, uint64(math.MaxUint16-s[scale])))
}

// least is about the time that all but one in twenty of the latest have; 0: no deadline.
func (s *scales) least() float64 {
	all := 0
	for _, n := range s {
		all += int(n)
	}
	few, scale := all/20, 0
	for ; scale < len(s)-1 && int(s[scale]) <= few; scale++ {
		few -= int(s[scale])
	}
	for i := range s {
		if all > 2*hasSpan {
			s[i] = uint16(int(s[i]) * hasSpan / all)
		}
	}
	return places.Time(scale)
}

const (
	evidenceLasts = 5 * time.Second // or evidenceTimes of the mean, if that is more
	evidenceTimes = 20
	hasSpan       = 200         // of the latest work of a told kind, or twice as many, say how much time it has
	kindsDiffer   = 3           // times as long: other work
	fairPart      = 0.4         // of the wait that a kind can bear, while a queue stands,
	fairBurst     = 0.8         // and otherwise
	untold        = time.Second // is taken for the time that callers have who tell no deadline, until some have left
	probeEvery    = 16          // of what evidence speaks against, one in so many is let try
)

// recent reports whether the latest times of the kind are evidence for now.
func (k *kind) recent(now time.Duration) bool {
	return k.n > 0 && float64(now-k.last) < max(float64(evidenceLasts), evidenceTimes*k.mean)
}

// end enters how long work of the kind took. What is too old is forgotten.
func (k *kind) end(now time.Duration, took, among float64, fair bool, o limit.Outcome) {
	if !k.recent(now) {
		*k = kind{level: k.level, told: k.told, held: k.held, has: k.has, times: k.times, fresh: k.fresh, arrived: k.arrived, stay: k.stay, doubted: k.doubted}
	}
	weight := weightOf(now-k.last, serviceMemory)
	k.last = now
	k.enter(took, among, weight, fair)
	k.quantiles(took, o, min(5*weight, 0.25))
}

// probe reports whether work of a kind may try what evidence speaks against.
func (k *kinds) probe(kind uint8) bool {
	of := &k.list[kind]
	of.doubted++
	return of.doubted%probeEvery == 0
}

// window enters what has arrived since the last one: how much of the latest work is of
// each kind.
func (k *kinds) window() {
	n := 0.0
	for i := range k.list {
		n += k.list[i].fresh
	}
	if n == 0 {
		return
	}
	weight := 1 - math.Pow(1-1/places.Span, n)
	for i := range k.list {
		of := &k.list[i]
		if of.told && of.fresh > 0 {
			of.has = of.times.least()
		}
		of.arrived += weight * (of.fresh/n - of.arrived)
		of.fresh = 0
	}
}

// survey looks what the kinds that are not rare have in common: whether their times differ
// much, and how long the shortest lived of a level can wait.
func (k *kinds) survey(now time.Duration) (mixed bool, bears [levels]float64) {
	low, high := math.Inf(1), 0.0
	for lv := range bears {
		bears[lv] = math.Inf(1)
	}
	for i := range k.list {
		of := &k.list[i]
		if of.arrived < places.Rare {
			continue
		}
		if of.recent(now) {
			low, high = min(low, of.mean), max(high, of.mean)
		}
		// Also where nothing of it has come through of late. What takes longer than there is
		// time, and a quantile that is still that of worse times, do not tell the others to wait
		// for nothing.
		has := cmp.Or(of.has, min(float64(untold), of.stay.most()))
		bears[of.level] = min(bears[of.level], max(has-of.high, has/2))
	}
	return high > kindsDiffer*low, bears
}

// longest is the highest of the upper quantiles.
func (k *kinds) longest() (high float64) {
	for i := range k.list {
		high = max(high, k.list[i].high)
	}
	return high
}
