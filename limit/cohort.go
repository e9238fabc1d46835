package limit

import (
	"math"
	"slices"
	"time"
)

// cohort collects the requests admitted under one limit and measures their
// latency once that can be done without bias. Judged as they end, short requests
// would speak first and for all; so a cohort is judged when the fastest four in
// five of its members are known exactly: they have ended, and whoever is still
// out has been out for longer.
type cohort struct {
	first     uint64        // the number of its first member
	want      int           // members it takes
	members   int           // admitted so far
	excluded  int           // of them, ended without saying anything about latency
	censored  int           // of them, ended by a deadline
	saturated int           // of them, admitted while every slot was in use
	inFlight  float64       // sum over the admissions
	peak      int           // the most of them
	start     time.Duration // of the cohort
	last      time.Duration // its last admission
	logs      []float64     // logarithms of the known times
	sorted    bool          // they are in order: since there was anything to judge
}

// reading is what a cohort tells.
type reading struct {
	at        time.Duration
	took      time.Duration // to collect it
	level     float64       // mean logarithm of the time in the backend, of the fastest four in five
	spread    float64       // standard deviation of the same
	n         float64       // times behind it
	inFlight  float64       // mean
	peak      float64       // the most in flight
	saturated bool          // mostly, every slot was in use
	drowned   bool          // too many ran into their deadlines to know the rest
	perSecond float64       // admissions
	lost      float64       // share that a deadline ended
}

// maxCohort bounds a cohort's memory.
const maxCohort = 320

// patience is how long a cohort waits for members before it makes do with few.
const (
	patience   = time.Second
	fewMembers = 8
	// leastMembers tell what a change does that is larger than their spread.
	leastMembers = 5
)

func (c *cohort) begin(first uint64, want int, now time.Duration) {
	want = min(max(want, 1), maxCohort)
	*c = cohort{first: first, want: want, start: now, last: now, logs: slices.Grow(c.logs[:0], want)}
}

func (c *cohort) admit(seq uint64, at time.Duration, load Load, limit int) {
	if seq < c.first || c.members >= c.want {
		return
	}
	c.members++
	c.last = at
	c.inFlight += float64(load.InFlight)
	c.peak = max(c.peak, load.InFlight)
	if load.Queued > 0 || load.InFlight >= limit {
		c.saturated++
	}
}

func (c *cohort) has(seq uint64) bool { return seq >= c.first && seq < c.first+uint64(c.members) }

// end enters a member's time, net of what its class takes of itself.
func (c *cohort) end(log float64, o Outcome) {
	switch o {
	case Deadline, Canceled:
		c.censored++
	case Success:
	default:
		c.excluded++
		return
	}
	if !c.sorted {
		c.logs = append(c.logs, log)
		return
	}
	i, _ := slices.BinarySearch(c.logs, log)
	c.logs = slices.Insert(c.logs, i, log)
}

// read judges the cohort, if it can be. Whoever is still out is of one of the classes.
func (c *cohort) read(now time.Duration, of *classes) (r reading, ok bool) {
	counted := c.members - c.excluded
	if c.censored >= max(3, c.want/4) && 4*c.censored >= 3*len(c.logs) {
		// The fastest end first, and they did not make it: neither will the rest.
		return c.reading(now, len(c.logs)), true
	}
	if c.members < c.want {
		if now-c.start < patience || counted < fewMembers {
			return r, false
		}
		c.want = c.members
	}
	known := (counted*4 + 4) / 5
	if known < 1 || len(c.logs) < known {
		return r, false
	}
	if !c.sorted {
		slices.Sort(c.logs)
		c.sorted = true
	}
	if len(c.logs) < counted && logOf(now-c.last)-of.most() < c.logs[known-1] {
		return r, false
	}
	return c.reading(now, known), true
}

// reading is what the first known of the logs say.
func (c *cohort) reading(now time.Duration, known int) (r reading) {
	var sum, squares float64
	for _, x := range c.logs[:known] {
		sum += x
		squares += x * x
	}
	r.at, r.took, r.n = now, now-c.start, float64(known)
	r.level = sum / r.n
	r.spread = math.Sqrt(max(squares/r.n-r.level*r.level, 1e-6))
	r.inFlight = max(c.inFlight/float64(c.members), 1)
	r.peak = float64(c.peak)
	r.lost = float64(c.censored) / float64(max(c.members-c.excluded, 1))
	r.saturated = 2*c.saturated > c.members
	r.drowned = 4*c.censored >= c.members-c.excluded || 4*c.censored >= 3*known
	if gathered := c.last - c.start; gathered > 0 && c.members > 4 {
		r.perSecond = float64(c.members-1) / gathered.Seconds()
	}
	return r
}

// spent reports whether nothing is left to wait for: every member ended without
// saying anything.
func (c *cohort) spent() bool { return c.members >= c.want && c.excluded >= c.members }

// mean is a running mean of readings that forgets: it stands for at most so many
// samples.
type mean struct{ level, n float64 }

func (m *mean) add(level, n, most float64) {
	if n <= 0 {
		return
	}
	total := m.n + n
	m.level += n / min(total, max(most, n)) * (level - m.level)
	m.n = min(total, max(most, n))
}

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
