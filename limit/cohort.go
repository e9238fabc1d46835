package limit

import (
	"math"
	"slices"
	"time"
)

// cohort collects the requests admitted under one limit and measures their latency
// once that can be done without bias. Judged as they end, short requests would
// speak first and for all; so a cohort is judged when the fastest four in five of
// its members are known exactly: they have ended, and those still running have run
// for longer.
//
// A member that its deadline or its caller ended would have taken at least that
// long. It stays among those that may take longer until then and says no more: the
// product-limit estimate (Kaplan and Meier, 1958).
type cohort struct {
	first    uint64        // the number of its first member
	want     int           // members it takes
	usual    float64       // the logarithm of the time that work takes without a queue,
	slow     float64       // and of one that is clearly too long
	members  int           // admitted so far
	skipped  int           // of them, of classes that are not measured,
	gone     int           // and of those, ended
	closed   bool          // it takes no more
	silent   int           // of the others, ended without a time that says anything
	refused  int           // of those, refused below
	lost     int           // of them, work that overload may have cost: see isLost
	early    int           // of them, ended by a deadline that is none of those,
	left     int           // and by callers that left, the same
	full     int           // of them, admitted while all slots were in use, and of one slot, while others waited
	inFlight float64       // sum over the admissions
	enforced float64       // the same
	start    time.Duration // of the cohort
	last     time.Duration // its last admission
	exact    []float64     // logarithms of the known times
	atLeast  []float64     // of the times that were cut short
	sorted   bool          // both slices are
}

// reading is what a cohort tells.
type reading struct {
	at        time.Duration
	took      time.Duration // to collect it, while anything ran
	count     float64       // admitted meanwhile, others too
	work      float64       // admitted meanwhile, others too, in that of the reference class
	admitted  float64       // the same as a number of times of one weight that say as much
	level     float64       // mean logarithm of the time in the backend, of the fastest four in five
	spread    float64       // standard deviation of the same
	n         float64       // times behind it
	inFlight  float64       // mean
	enforced  float64       // mean of the slots that could be in use
	saturated bool          // mostly, all of those were
	lost      float64       // share of the work that overload may have cost
	refused   float64       // share that was refused below
	open      bool          // the slower of them were cut short: the level is the least it can be
	blind     bool          // every one of them was
	done      float64       // work done a second, in that of the reference class
	perSecond float64       // admissions
	first     bool          // there was no baseline before it
}

const (
	// maxCohort bounds a cohort's memory.
	maxCohort = 320
	// patience is how long a cohort waits for members before it makes do with few.
	patience   = time.Second
	fewMembers = 8
	// leastMembers tell what a change does that is larger than their spread.
	leastMembers = 5
	// judged is the share of a cohort that has to be known: a fifth may be slower
	// than anything, and the slowest work of all says little about load.
	judged    = 0.8
	hardlyAny = 5 // one in so many
	// muchLost is the share of lost work above which the latency of the rest looks too
	// good.
	muchLost = 0.25
)

func (c *cohort) begin(first uint64, want int, usual, slow float64, now time.Duration) {
	want = min(max(want, 1), maxCohort)
	*c = cohort{first: first, want: want, usual: usual, slow: slow, start: now, last: now, exact: slices.Grow(c.exact[:0], want), atLeast: c.atLeast[:0]}
}

func (c *cohort) admit(seq uint64, at time.Duration, load Load, enforced int, measured bool) {
	if seq < c.first || c.closed {
		return
	}
	c.members++
	if !measured {
		c.skipped++
	}
	c.closed = c.measured() >= c.want
	c.last = at
	c.inFlight += float64(load.InFlight)
	c.enforced += float64(enforced)
	if load.Queued > 0 || load.InFlight >= max(enforced, 2) { // a single slot is in use while anything runs: that says nothing
		c.full++
	}
}

func (c *cohort) has(seq uint64) bool { return seq >= c.first && seq < c.first+uint64(c.members) }

// endSkipped enters the end of a member of a class that is not measured: only what is lost
// or late counts, and of a class of which nothing is known what was not done.
func (c *cohort) endSkipped(log float64, o Outcome, known bool) {
	if o == Deadline || c.isLost(log, o) || !known && o != Success {
		c.skipped = max(c.skipped-1, 0)
		c.end(log, o)
		return
	}
	c.gone++
	c.skipped = max(c.skipped, c.gone) // an owner need not say the class at the start
}

// measured is how many members have a time that counts.
func (c *cohort) measured() int { return c.members - c.skipped }

// end enters the time of a member of a class that is measured, net of what the class takes
// of itself.
func (c *cohort) end(log float64, o Outcome) {
	if c.isLost(log, o) {
		c.lost++
	} else if o == Deadline {
		c.early++
	} else if o == Canceled {
		c.left++
	}
	switch o {
	case Success:
		c.exact = c.enter(c.exact, log)
	case Deadline, Canceled:
		c.atLeast = c.enter(c.atLeast, log)
	case Overload:
		c.refused++
		c.silent++
	default:
		c.silent++
	}
}

// isLost reports whether overload below may have cost the work: it was refused there,
// its deadline passed though it ran for as long as work usually takes, or its caller
// left when it had become clearly slow. A deadline that ends work sooner had mostly
// run out before the start, and a caller that leaves sooner has reasons of its own.
func (c *cohort) isLost(log float64, o Outcome) bool {
	return o == Overload || o == Deadline && log > c.usual || o == Canceled && log > c.slow
}

func (c *cohort) enter(logs []float64, log float64) []float64 {
	if !c.sorted {
		return append(logs, log)
	}
	i, _ := slices.BinarySearch(logs, log)
	return slices.Insert(logs, i, log)
}

// losses is how many members are lost. Where none was done, every deadline counts:
// then what work usually takes is not known any more.
func (c *cohort) losses() int {
	if len(c.exact) == 0 {
		return c.lost + c.early
	}
	return c.lost
}

// allLosses is losses once nearly all have ended. Where hardly any was done, callers that left
// count too: some have reasons of their own, and not nearly all of them. Those that leave are the
// first to end, so before that they would look like nearly all.
func (c *cohort) allLosses() int {
	if len(c.exact) <= c.ended()/hardlyAny {
		return c.losses() + c.left
	}
	return c.losses()
}

// ended is how many members have ended with a time.
func (c *cohort) ended() int { return len(c.exact) + len(c.atLeast) }

// allSilent reports whether every member ended without a time.
func (c *cohort) allSilent() bool { return c.closed && c.silent >= c.measured() }

// read judges the cohort, if it can be. Members still running are of one of the
// classes. overdue says that what has not ended by now is not waited for: it counts
// as long by nature, if it is the lesser part.
func (c *cohort) read(now time.Duration, of *classes, overdue bool, r *reading) bool {
	counted := c.measured() - c.silent
	if slow := c.losses() - c.refused; slow >= max(3, c.want/4) && 4*slow >= 3*c.ended() {
		// The fastest end first, and they did not make it: neither will the rest.
		*r = c.reading(now, c.ended())
		return true
	}
	if !c.closed {
		if now-c.start < patience || counted < fewMembers {
			return false
		}
		c.closed, c.want = true, c.measured()
	}
	if counted == 0 && c.refused > 0 { // all that is known is that they were refused below
		*r = c.reading(now, 0)
		return true
	}
	if counted <= 0 {
		return false
	}
	out := counted - c.ended()
	if overdue && out > 0 && 2*out < counted {
		counted, out = c.ended(), 0
	}
	if c.ended() < fourInFive(counted) {
		return false
	}
	if out == 0 {
		*r = c.reading(now, counted)
		return true
	}
	youngest := logOf(now-c.last) - of.most()
	if len(c.atLeast) == 0 { // the usual case, and this is asked at each end
		c.sort()
		if youngest < c.exact[fourInFive(counted)-1] {
			return false
		}
	}
	*r = c.reading(now, counted)
	return !r.blind && youngest >= c.exact[int(r.n)-1]
}

// fourInFive is how many members have to be known, of so many: the share judged.
func fourInFive(n int) int { return (4*n + 4) / 5 }

func (c *cohort) sort() {
	if !c.sorted {
		slices.Sort(c.exact)
		slices.Sort(c.atLeast)
		c.sorted = true
	}
}

// reading is what the known times say of so many members.
func (c *cohort) reading(now time.Duration, counted int) (r reading) {
	c.sort()
	counted = max(counted, c.ended()) // should an end be told twice
	var sum, squares, mass float64
	alive := 1.0 // the share that takes longer than the times so far
	cut := 0
	for i, x := range c.exact {
		for cut < len(c.atLeast) && c.atLeast[cut] < x {
			cut++
		}
		dies := alive / float64(counted-i-cut)
		sum, squares, mass = sum+dies*x, squares+dies*x*x, mass+dies
		alive -= dies
		if r.n++; mass >= judged-1e-9 {
			break
		}
	}
	if rest := judged - mass; rest > 1e-9 && len(c.atLeast) > 0 {
		x := c.atLeast[len(c.atLeast)-1] // the rest takes at least as long as any of it was seen to
		sum, squares, mass = sum+rest*x, squares+rest*x*x, mass+rest
		r.open = true
	}
	if r.blind = r.n == 0; r.blind {
		r.n = 1
	}
	mass = max(mass, 1e-9)
	r.at, r.took = now, now-c.start
	r.level = sum / mass
	r.spread = math.Sqrt(max(squares/mass-r.level*r.level, 1e-6))
	r.inFlight = max(c.inFlight/float64(c.members), 1)
	r.enforced = c.enforced / float64(c.members)
	r.saturated = 2*c.full > c.members
	all := float64(max(counted+c.refused, 1))
	r.lost, r.refused = float64(c.allLosses())/all, float64(c.refused)/all
	if gathered := c.last - c.start; gathered > 0 && c.members > 4 {
		r.perSecond = float64(c.members-1) / gathered.Seconds()
	}
	return r
}
