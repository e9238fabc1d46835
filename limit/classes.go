package limit

import (
	"math"
	"slices"
)

// classes finds out whether one class of work takes much longer of itself than
// another. If so its times are compared net of that; otherwise a change in the
// mix, such as the gate shedding the short and unimportant, would look like a
// slower backend. Every time is compared with the latest of one reference class,
// because both met the same queue.
type classes struct {
	count     [Classes]int
	reference uint8 // the first to be known
	seen      bool
	away      int  // times of others since the last of it
	recent    mean // its times of late
	differs   [Classes]mean
	squares   [Classes]mean
	offset    [Classes]float64
}

const (
	classRecent  = 32 // times of the reference that speak for now
	classAway    = 16 // times of others without one of the reference, and nothing is known of now
	classSamples = 5  // at least, to tell
	classMemory  = 64
	classMatters = 0.7 // a factor of two
	classSure    = 5   // standard errors
)

// learns reports whether times of the class are wanted though they belong to no
// cohort: those of a long and rare one hardly ever do.
func (c *classes) learns(class uint8) bool {
	return class != c.reference && c.differs[class].n < classMemory
}

// learn enters the logarithm of a time. It reports whether the offsets changed.
func (c *classes) learn(class uint8, log float64) bool {
	c.count[class]++
	switch {
	case !c.seen:
		if c.seen = c.count[class] == classSamples; c.seen {
			c.reference = class
		}
		return false
	case class == c.reference:
		c.recent.add(log, 1, classRecent)
		c.away = 0
		return false
	}
	if c.away++; c.away > classAway {
		c.recent = mean{}
	}
	if c.recent.n < classSamples {
		return false
	}
	d := log - c.recent.level
	c.differs[class].add(d, 1, classMemory)
	c.squares[class].add(d*d, 1, classMemory)
	m := c.differs[class]
	if m.n < classSamples {
		return false
	}
	sure := classSure * math.Sqrt(2*max(c.squares[class].level-m.level*m.level, 0)/(m.n-3))
	if c.offset[class] == 0 && math.Abs(m.level) < classMatters || math.Abs(m.level-c.offset[class]) < max(classMatters, sure) {
		return false
	}
	c.offset[class] = m.level
	return true
}

// most is the most that a class may add to the logarithm of a time.
func (c *classes) most() float64 { return max(0, slices.Max(c.offset[:])) }
