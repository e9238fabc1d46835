package limit

import "math"

// classes finds out how much longer one class of work takes of itself than another.
// Its times are compared net of that; otherwise a change in the mix, such as the gate
// shedding the short and unimportant, would look like a slower backend. Every time is
// compared with the latest of one reference class, because both met the same queue.
//
// Classes that take several times as long as the reference are not measured: the others
// tell of a queue sooner, and better. Nor are those that are several times as short: a
// queue is much of their time, and little of all. What a queue costs in all is another
// question, which the weights of the classes answer.
type classes struct {
	reference uint8 // the first to be known; later the longest of the frequent
	seen      bool
	recent    mean // its times of late, net
	times     int  // since the last election
	used      int  // classes above have no times
	of        [Classes]class
}

// There are many, and a limiter at rest is small.
type class struct {
	squares float32 // mean of the square of what differs is the mean of
	n       int16   // of times behind both
	count   uint8   // of times, since the last election once one class is known
	known   bool
	differs float64
	offset  float64
	weight  float64 // what one of it takes of the slots, that of the first reference being 1; 0: not known
}

// differ enters by how much a time differs.
func (k *class) differ(d float64) {
	k.n = min(k.n+1, classMemory)
	weight := 1 / float64(k.n)
	k.differs += weight * (d - k.differs)
	k.squares += float32(weight * (d*d - float64(k.squares)))
}

const (
	classRecent  = 32 // times of the reference that speak for now
	classTerm    = 64 // times between two elections of a reference
	classOften   = 8  // of them make a class frequent
	classSamples = 5  // at least, to tell
	classUndone  = 16 // at most: a class that does not clearly differ is like the reference
	classMemory  = 256
	classEnough  = 64  // times; later ones are entered only while calm
	classMatters = 0.3 // of the logarithm
	classSure    = 6   // standard errors
	classLong    = 1.6 // of the logarithm: five times as long
)

// learns reports whether times of the class are wanted though they belong to no
// cohort: those of a long and rare one hardly ever do.
func (c *classes) learns(class uint8) bool {
	return class != c.reference && c.of[class].n < classEnough
}

// weight is what work of the class takes of the slots. Until one class is known all are
// alike.
func (c *classes) weight(class uint8) float64 {
	if !c.seen {
		return 1
	}
	return c.of[class].weight
}

// measured reports whether times of the class are.
func (c *classes) measured(class uint8) bool {
	k := &c.of[class]
	return !c.seen || k.known && math.Abs(k.offset-c.of[c.reference].offset) < classLong
}

// learn enters the logarithm of a time. It reports whether weights changed, and whether
// times that were entered before can no longer be compared. What is known of a class is
// corrected only while calm: a wait is many times the short and little of the long. Stale
// says that hardly anything comes of what is measured.
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
		c.recent.add(log, 1, classRecent)
		return rescaled, rescaled
	}
	if c.times++; (c.times >= classTerm || stale && c.times >= classOften) && c.elect() {
		return true, false
	}
	if class == c.reference {
		c.recent.add(log-k.offset, 1, classRecent)
		return false, false
	}
	if k.known && (c.recent.n < classSamples || !calm && k.n >= classEnough) {
		return false, false
	}
	k.differ(log - c.recent.level)
	if k.n < classSamples {
		return false, false
	}
	sure := classSure * math.Sqrt(2*max(float64(k.squares)-k.differs*k.differs, 0)/float64(k.n-3))
	switch differs := math.Abs(k.differs-k.offset) >= max(classMatters, sure); {
	case !k.known:
		if !differs && k.n < classUndone {
			return false, false
		}
		k.known, k.weight = true, 1
		changed = true
	case differs && k.offset == 0:
		changed, rescaled = true, true
	}
	if differs := changed && math.Abs(k.differs) >= max(classMatters, sure) || k.offset != 0; differs { // ever better known
		k.offset, k.weight = k.differs, math.Exp(k.differs)
	}
	return changed, rescaled
}

// elect makes the longest of the frequent classes the reference, and reports whether
// that changes what is measured.
func (c *classes) elect() (changed bool) {
	elected, often := -1, uint8(max(3, classOften*c.times/classTerm))
	for i := range c.of[:c.used] {
		k := &c.of[i]
		if k.known && k.count >= often && (elected < 0 || k.offset > c.of[elected].offset) {
			elected = i
		}
	}
	if r := &c.of[c.reference]; elected >= 0 && c.times >= classTerm && r.count > 0 && r.offset > c.of[elected].offset {
		elected = int(c.reference) // while it still comes: after a restart the short end first
	}
	c.times = 0
	for i := range c.of[:c.used] {
		c.of[i].count = 0
	}
	if elected < 0 || uint8(elected) == c.reference {
		return false
	}
	changed = math.Abs(c.of[elected].offset-c.of[c.reference].offset) >= classMatters
	c.reference = uint8(elected) // what is recent is net of what the class takes of itself
	return changed
}

// forget drops what is known of a class. It reports whether that changes what is
// measured, and whether times that were entered before can no longer be compared: no
// other class is known to compare with.
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
	c.reference = uint8(next) // what is recent is net of what the class takes of itself
	return true, false
}

// most is the most that a class that is measured may add to the logarithm of a time.
func (c *classes) most() (most float64) {
	for i := range c.of[:c.used] {
		if c.measured(uint8(i)) {
			most = max(most, c.of[i].offset)
		}
	}
	return most
}
