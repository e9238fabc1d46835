package gate

import (
	"cmp"
	"math"
	"math/bits"
	"time"

	"github.com/spillway-go/spillway/internal/places"
	"github.com/spillway-go/spillway/internal/priority"
	"github.com/spillway-go/spillway/limit"
)

// kinds are the kinds of work that a gate distinguishes, indexed by place. The place of a kind is the
// class of its work for the law. The kind of unnamed work
// is derived from its priority and the order of magnitude of its deadline: callers give a report
// more time than a lookup. Service times are evidence only about their own kind.
type kinds struct{ list []kind }

// Key returns the identity of arriving work: its priority, the order of magnitude of its remaining
// time, and the name of its kind.
func Key(now time.Duration, a *Arrival) places.Key {
	return a.Kind.Key(priority.Level(a.Priority), places.Scale(left(now, a.Deadline)))
}

// KindOf returns the value of Arrival.Kind for the name of a kind. It may be called at any time, by
// any goroutine.
func (g *Gate) KindOf(name string) places.Name { return g.places.Name(name) }

// kind returns the place of the kind of n arriving pieces of work.
func (g *Gate) kind(key places.Key, n float64) uint8 {
	at := g.places.Find(key, n)
	if k := &g.service.kinds; int(at) == len(k.list) {
		k.list = append(k.list, g.newKind(at))
	}
	return at
}

// renew gives the places of rare kinds to kinds that have become frequent. The evidence about the
// replaced kinds is dropped.
func (g *Gate) renew() {
	for left := g.places.Renew(g.service.kinds.busy()); left != 0; left &= left - 1 {
		at := bits.TrailingZeros32(left)
		g.service.kinds.list[at] = g.newKind(uint8(at))
		if f, ok := g.limits.law.(limit.Forgetter); ok {
			f.Forget(uint8(at))
		}
		if g.dry != nil {
			g.dry.estimator.Forget(uint8(at))
		}
	}
}

// busy returns the places of the kinds whose work waits or runs, as bits.
func (k *kinds) busy() (all uint32) {
	for i := range k.list {
		if k.list[i].present > 0 {
			all |= 1 << i
		}
	}
	return all
}

// kind is the evidence about the service times of one kind of work.
type kind struct {
	level   int8
	named   bool // the kind has a name
	name    string
	tally   *Tally
	present int32 // pieces of work that wait or run
	occupancy
	low, high float64 // estimates of the 5 % and the 95 % quantile
	usual     usual
	parked    parked
	last      time.Duration // when work of the kind last ended
	// has is the approximate time to the deadline on arrival, in nanoseconds; 0: no deadline. Of
	// the work of a named kind, 19 in 20 pieces have at least that time.
	has          float64
	times        scales        // times to the deadline, for a named kind
	fresh        float64       // arrivals since the last window
	ends         int           // ends since the last window
	arrivalShare float64       // share of recent arrivals
	stay         stay          // stay of callers without a deadline
	doubted      int           // arrivals whose predicted wait was too long, since the last probe
	probed       time.Duration // when an arrival last waited as a probe
}

// came counts n arrivals that may still be in time.
func (k *kind) came(key places.Key, n uint64) {
	k.fresh += float64(n)
	if k.named {
		k.times.add(key.Scale(), n)
	}
}

// scales counts work by the order of magnitude of its time to the deadline.
type scales [places.Scales]uint16

// newKind returns the kind of a place, without evidence.
func (g *Gate) newKind(at uint8) kind {
	key := g.places.Key(at)
	k := kind{level: int8(key.Level()), named: key.Named(), tally: &g.tallies.first}
	if !k.named {
		k.has = places.Time(key.Scale())
	}
	return k
}

// add counts n pieces of work.
func (s *scales) add(scale int, n uint64) {
	s[scale] += uint16(min(n, uint64(math.MaxUint16-s[scale])))
}

// usualTime is the approximate time to the deadline that 19 in 20 of the latest pieces of work have; 0:
// no deadline. If more than 2*hasSpan pieces are counted, usualTime scales their counts down to
// hasSpan, so that old work is forgotten.
func (s *scales) usualTime() float64 {
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
	manyEnds      = 5 * serviceSpan // ends of a kind in a window from which one in oneIn is evidence
	oneIn         = 7
	evidenceLasts = 5 * time.Second // or evidenceTimes means, if longer
	evidenceTimes = 20
	hasSpan       = 200         // pieces of work behind the time to the deadline of a named kind, or up to twice as many
	kindsDiffer   = 3           // ratio of mean service times from which kinds count as different
	fairPart      = 0.4         // in overload: allowed part of the wait that a kind can bear
	fairBurst     = 0.8         // fairPart after an overload, until Gate.overdemand is zero
	assumedTime   = time.Second // assumed time of callers without a deadline, until some have left
	probeEvery    = 16          // one in this many arrivals with too long a predicted wait may wait
)

// recent reports whether the latest times of the kind are still evidence.
func (k *kind) recent(now time.Duration) bool {
	since := now - k.last
	return k.n > 0 && (since < evidenceLasts || float64(since) < evidenceTimes*k.mean)
}

// isEvidence reports whether one more end of work of the kind is evidence about service times. The means
// cover a hundred ends. Of thousands in a tenth of a second, some suffice.
func (k *kind) isEvidence() bool {
	k.ends++
	return k.ends <= manyEnds || uint32(k.ends)*2654435769 < math.MaxUint32/oneIn // a hash by Knuth: work often ends in groups
}

// probe reports whether an arrival of a kind may wait although its predicted wait is too long. Probes
// are one in probeEvery of such arrivals, and those of all kinds take at most one part in probeEvery of
// the capacity. part is the capacity that a piece of work takes, in nanoseconds.
func (k *kinds) probe(now time.Duration, kind uint8, part float64) bool {
	of := &k.list[kind]
	of.doubted++
	if of.doubted < probeEvery || float64(now-of.probed) < probeEvery*part*float64(len(k.list)) {
		return false
	}
	of.doubted, of.probed = 0, now
	return true
}

// window updates the share of each kind in recent arrivals with the arrivals since the last window.
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
		if of.named && of.fresh > 0 {
			of.has = of.times.usualTime()
		}
		of.arrivalShare += weight * (of.fresh/n - of.arrivalShare)
		of.fresh, of.ends = 0, 0
	}
}

// survey compares the kinds that are not rare. mixed reports whether their service times differ
// much. bears is how long work of each level can wait, by its kind with the least time to spare.
func (k *kinds) survey(now time.Duration) (mixed bool, bears [levels]float64) {
	low, high := math.Inf(1), 0.0
	for lv := range bears {
		bears[lv] = math.Inf(1)
	}
	for i := range k.list {
		of := &k.list[i]
		if of.arrivalShare < places.Rare {
			continue
		}
		if of.recent(now) {
			low, high = min(low, of.mean), max(high, of.mean)
		}
		// Kinds without recent evidence count too. Each kind counts with at least half of its time
		// to the deadline. Otherwise a kind that cannot meet its deadlines, or a stale high quantile,
		// would keep the other kinds from waiting.
		has := cmp.Or(of.has, min(float64(assumedTime), of.stay.most()))
		bears[of.level] = min(bears[of.level], max(has-of.high, has/2))
	}
	return high > kindsDiffer*low, bears
}

// longest is the highest upper quantile of all kinds.
func (k *kinds) longest() (high float64) {
	for i := range k.list {
		high = max(high, k.list[i].high)
	}
	return high
}
