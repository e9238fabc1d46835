package gate

import (
	"math"
	"time"

	"github.com/spillway-go/spillway/limit"
)

// kinds are the kinds of work that a gate tells apart. Work that says nothing about
// itself is of the kind of its priority and of the order of magnitude of its deadline:
// callers give a report more time than a lookup. Times of one kind are evidence about
// that kind only.
type kinds struct {
	of   [levels * scales]uint8 // the index in list, plus one; 0: none yet
	list []kind
}

const (
	mostKinds = limit.Classes // those that come later share the last of their level
	shortest  = -4            // 2^-4 s and less are one scale
	scales    = 16            // orders of magnitude, powers of two about a second; the last is that of work without a deadline
)

// scale is the order of magnitude of the time that work has when it arrives.
func scale(left time.Duration) int {
	switch {
	case left == Never:
		return scales - 1
	case left <= 0: // its deadline has passed
		return 0
	}
	const one = 1023 // of a float's exponent
	nearest := int(math.Float64bits(left.Seconds()*math.Sqrt2)>>52) - one
	return min(max(nearest-shortest, 0), scales-2)
}

// key numbers what can be told of work of a level that has so much time left.
func key(lv int, left time.Duration) int { return lv*scales + scale(left) }

// find is the index of the kind of work of a key.
func (k *kinds) find(key int) uint8 {
	i := &k.of[key]
	if *i == 0 {
		if len(k.list) < mostKinds {
			of := kind{level: key / scales, has: float64(untold)}
			if s := key % scales; s < scales-1 {
				of.has = float64(time.Second) * math.Exp2(float64(s+shortest))
			}
			k.list = append(k.list, of)
		}
		*i = k.nearest(key) + 1
	}
	return *i - 1
}

// nearest is the index of the last kind of the level of a key, the one just made if that
// is new; of any level if there is none.
func (k *kinds) nearest(key int) uint8 {
	for i := len(k.list) - 1; i >= 0; i-- {
		if k.list[i].level == key/scales {
			return uint8(i)
		}
	}
	return uint8(len(k.list) - 1)
}

// kind is what is known of how long one kind of work takes.
type kind struct {
	level int
	cost
	low, high float64       // about the 5 % and the 95 % quantile
	last      time.Duration // when one of it ended
	has       float64       // about the time that work of the kind has when it arrives, in nanoseconds
	fresh     float64       // how much of it arrived since the last window
	arrived   float64       // how much of the latest work was of the kind
	doubted   uint64        // how many would have been refused on this evidence
}

const (
	evidenceLasts = 5 * time.Second // or evidenceTimes of the mean, if that is more
	evidenceTimes = 20
	kindSpan      = 1000.0      // of the latest work, of which
	kindRare      = 0.01        // is the share of a kind that the others need not care for
	kindsDiffer   = 3           // times as long: other work
	fairPart      = 0.4         // of the wait that a kind can bear, while a queue stands,
	fairBurst     = 0.8         // and otherwise
	untold        = time.Second // is taken for the time that callers have who tell no deadline
	probeEvery    = 16          // of what evidence speaks against, one in so many is let try
)

// recent reports whether the latest times of the kind are evidence for now.
func (k *kind) recent(now time.Duration) bool {
	return k.n > 0 && float64(now-k.last) < max(float64(evidenceLasts), evidenceTimes*k.mean)
}

// end enters how long work of the kind took. What is too old is forgotten.
func (k *kind) end(now time.Duration, took, among float64, fair bool, o limit.Outcome) {
	if !k.recent(now) {
		*k = kind{level: k.level, has: k.has, fresh: k.fresh, arrived: k.arrived, doubted: k.doubted}
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
	weight := 1 - math.Pow(1-1/kindSpan, n)
	for i := range k.list {
		of := &k.list[i]
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
		if of.arrived < kindRare {
			continue
		}
		if of.recent(now) {
			low, high = min(low, of.mean), max(high, of.mean)
		}
		// Also where nothing of it has come through of late. What takes longer than there is
		// time, and a quantile that is still that of worse times, do not tell the others to wait
		// for nothing.
		bears[of.level] = min(bears[of.level], max(of.has-of.high, of.has/2))
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
