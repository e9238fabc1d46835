package limit

import "math"

// classes estimates how much longer one class of work takes than another: the offset of the class.
// Times are compared net of the offset. Otherwise a change in the mix, such as the gate shedding
// short unimportant work, would look like a slower backend. Each time is compared with recent times
// of one reference class, because both met the same queue.
//
// Classes that take several times as long as the reference are not measured: shorter classes show
// a queue sooner and more clearly. Classes several times as short are not measured either: a queue
// is a large share of their time but a small share of all time. What a queue costs all work follows
// from the class weights.
type classes struct {
	reference uint8 // the first class known; later the longest frequent class
	seen      bool
	recent    mean // recent times of the reference, net of its offset
	times     int  // number of times since the last election
	used      int  // classes from this number on have no times
	of        [Classes]class
}

// class is small, because each limiter has many and an idle limiter should be small.
type class struct {
	squares float32 // mean square of the differences from the reference
	n       int16   // number of times behind differs and squares
	count   uint8   // number of times; since the last election, once a class is known
	known   bool
	differs float64 // mean difference from the reference, of logarithms
	offset  float64 // difference in use; 0 if the class does not clearly differ
	weight  float64 // mean slot time of one piece, in units of the first reference; 0: not known
}

// differ adds the difference d of a time from the reference.
func (k *class) differ(d float64) {
	k.n = min(k.n+1, classMemory)
	weight := 1 / float64(k.n)
	k.differs += weight * (d - k.differs)
	k.squares += float32(weight * (d*d - float64(k.squares)))
}

const (
	classRecent  = 32 // most times behind recent
	classTerm    = 64 // times between two elections of a reference
	classOften   = 8  // times per term that make a class frequent
	classSamples = 5  // least times for an estimate
	classSettled = 16 // times after which a class that does not clearly differ counts as known
	classMemory  = 256
	classEnough  = 64  // times after which more are entered only while calm
	classMatters = 0.3 // least difference of logarithms that matters
	classSure    = 6   // standard errors of a clear difference
	otherQueue   = 1.4 // ratio of two limits with different queues
	fewSlots     = 4   // up to this limit, each raise has such a ratio
	classLong    = 1.6 // difference of logarithms: five times as long
)

// learns reports whether times of the class are wanted even outside a cohort: times of a long and
// rare class are hardly ever in one.
func (c *classes) learns(class uint8) bool {
	return class != c.reference && c.of[class].n < classEnough
}

// weight is the mean slot time of work of the class. Until the first class is known, all weights are 1.
// From then on an unknown class has the weight 0.
func (c *classes) weight(class uint8) float64 {
	if !c.seen {
		return 1
	}
	return c.of[class].weight
}

// measured reports whether times of the class enter the latency of a cohort.
func (c *classes) measured(class uint8) bool {
	k := &c.of[class]
	return class == c.reference || !c.seen || k.known && math.Abs(k.offset-c.of[c.reference].offset) < classLong
}

// again is learn for a time of the reference that is not stale. It returns false, and does nothing, for
// other times and when an election of the reference is due.
func (c *classes) again(class uint8, log float64) bool {
	k := &c.of[class]
	if class != c.reference || !c.seen || c.times >= classTerm-1 {
		return false
	}
	c.times++
	k.count++
	c.recent.one(log-k.offset, classRecent)
	return true
}

// learn enters the logarithm of a time. changed reports whether weights changed, and rescaled
// whether earlier times can no longer be compared. The estimate of a well known class is corrected
// only while calm: a wait multiplies short times and adds little to long times. stale reports that
// most recent admissions are of classes that are not measured.
func (c *classes) learn(class uint8, log float64, calm, stale bool) (changed, rescaled bool) {
	k := &c.of[class]
	k.count++
	c.used = max(c.used, int(class)+1)
	if !c.seen {
		if k.count < classSamples {
			return false, false
		}
		c.seen, c.reference = true, class
		k.known, k.weight = true, 1
		for i := range c.of[:c.used] {
			rescaled = rescaled || i != int(class) && c.of[i].count > 0
		}
		c.recent.one(log, classRecent)
		return rescaled, rescaled
	}
	if c.times++; (c.times >= classTerm || stale && c.times >= classOften) && c.elect() {
		return true, false
	}
	if class == c.reference {
		c.recent.one(log-k.offset, classRecent)
		return false, false
	}
	if c.recent.n == 0 && !stale {
		return false, false
	}
	return c.learnOther(k, log, calm)
}

// learnOther is learn for a time of another class than the reference.
func (c *classes) learnOther(k *class, log float64, calm bool) (changed, rescaled bool) {
	if k.known && (c.recent.n < classSamples || !calm && k.n >= classEnough) {
		return false, false
	}
	k.differ(log - c.recent.value)
	if k.n < classSamples {
		return false, false
	}
	sure := classSure * math.Sqrt(2*max(float64(k.squares)-k.differs*k.differs, 0)/float64(k.n-3))
	switch differs := math.Abs(k.differs-k.offset) >= max(classMatters, sure); {
	case !k.known:
		if !differs && k.n < classSettled {
			return false, false
		}
		k.known, k.weight = true, 1
		changed = true
	case differs && k.offset == 0:
		changed, rescaled = true, true
	}
	// The estimate improves with each time.
	if differs := changed && math.Abs(k.differs) >= max(classMatters, sure) || k.offset != 0; differs {
		k.offset, k.weight = k.differs, math.Exp(k.differs)
	}
	return changed, rescaled
}

// meet makes the recent times of the reference outdated if the limit changes so much that work of other classes
// will meet another queue. A reference that hardly ever ends would be compared with times under another
// limit.
func (c *classes) meet(from, to float64) {
	if high := max(from, to); high > fewSlots && high >= otherQueue*min(from, to) {
		c.recent.n = 0
	}
}

// elect makes the longest frequent class the reference, and reports whether the set of measured
// classes may change.
func (c *classes) elect() (changed bool) {
	elected, often := -1, uint8(max(3, classOften*c.times/classTerm))
	for i := range c.of[:c.used] {
		k := &c.of[i]
		if k.known && k.count >= often && (elected < 0 || k.offset > c.of[elected].offset) {
			elected = i
		}
	}
	if r := &c.of[c.reference]; elected >= 0 && c.times >= classTerm && r.count > 0 && r.offset > c.of[elected].offset {
		elected = int(c.reference) // the reference still arrives: after a restart short work ends first
	}
	c.times = 0
	for i := range c.of[:c.used] {
		c.of[i].count = 0
	}
	if elected < 0 || uint8(elected) == c.reference {
		return false
	}
	changed = math.Abs(c.of[elected].offset-c.of[c.reference].offset) >= classMatters
	c.reference = uint8(elected) // recent is net of class offsets and stays valid
	return changed
}

// forget drops the estimate of a class. changed reports whether the set of measured classes may
// change. rescaled reports whether earlier times can no longer be compared, because no other class
// is known.
func (c *classes) forget(which uint8) (changed, rescaled bool) {
	c.of[which] = class{}
	if !c.seen || which != c.reference {
		return false, false
	}
	next := -1
	for i := range c.of[:c.used] {
		if k := &c.of[i]; k.known && (next < 0 || k.count > c.of[next].count) {
			next = i
		}
	}
	if next < 0 {
		*c = classes{}
		return true, true
	}
	c.reference = uint8(next) // recent is net of class offsets and stays valid
	return true, false
}

// most is the largest offset of a measured class.
func (c *classes) most() (most float64) {
	for i := range c.of[:c.used] {
		if c.measured(uint8(i)) {
			most = max(most, c.of[i].offset)
		}
	}
	return most
}
