package limit

import (
	"math"
	"slices"
	"time"
)

// cohort collects the requests admitted under one limit and measures their latency without bias.
// Short requests end first, so latencies in the order of the ends would be biased. A cohort is
// therefore read when its fastest four in five members are known exactly: they have ended, and
// the running members have already run for longer.
//
// A member ended by its deadline or its caller is censored: its time is a lower bound. It counts
// as at risk up to its time only: the product-limit estimate (Kaplan and Meier, 1958).
type cohort struct {
	first    uint64        // admission number of the first member
	want     int           // measured members at which the cohort closes
	usual    float64       // logarithm of the usual time without a queue
	slow     float64       // logarithm of the time from which work is clearly slow
	members  int           // members admitted so far
	skipped  int           // members of classes that are not measured
	gone     int           // skipped members that have ended
	closed   bool          // the cohort takes no more members
	silent   int           // measured members that ended without a usable time
	refused  int           // silent members refused by a backend
	lost     int           // measured members lost to overload: see isLost
	early    int           // measured members ended by a deadline and not lost
	left     int           // measured members ended by their caller and not lost
	full     int           // members admitted at full use; with one slot, while others waited
	inFlight float64       // sum of the slots in use over the admissions
	enforced float64       // sum of the enforced limits over the admissions
	start    time.Duration // start of the cohort
	last     time.Duration // last admission of a member
	exact    []float64     // logarithms of the exact times, sorted
	atLeast  []float64     // logarithms of the censored times, sorted
}

// reading is the measurement of a cohort.
type reading struct {
	at        time.Duration
	elapsed   time.Duration // from the start of the cohort to its reading, without idle time
	count     float64       // admissions in elapsed, other requests included
	work      float64       // work admitted in elapsed, in units of the reference class
	workSize  float64       // effective sample size of work
	logTime   float64       // mean logarithm of the time in the backend, of the fastest four in five
	spread    float64       // standard deviation of these logarithms
	n         float64       // number of times behind logTime
	inFlight  float64       // mean slots in use
	enforced  float64       // mean enforced limit
	full      bool          // all slots were in use at more than half of the admissions
	lost      float64       // share of the work lost to overload
	refused   float64       // share of the work refused by a backend
	open      bool          // the slower times are censored: logTime is a lower bound
	blind     bool          // every time is censored
	done      float64       // work done per second, in units of the reference class
	perSecond float64       // admissions per second
	fastest   float64       // mean logarithm of the fastest quarter of the exact times
	first     bool          // no baseline existed before
}

// slotTime is the mean time that work of any class held a slot, in nanoseconds, by Little's law; 0:
// unknown.
func (r *reading) slotTime() float64 {
	if r.count == 0 {
		return 0
	}
	return float64(r.elapsed) * r.inFlight / r.count
}

// unqueued is how many pieces of work can be in the backend without a queue, by Little's law: what is done
// in the time that the fastest quarter takes. Zero: unknown. Where times differ much, unqueued is too low.
func (r *reading) unqueued() float64 {
	if r.blind {
		return 0
	}
	return r.done * math.Exp(r.fastest) / 1e9
}

const (
	// maxCohort bounds a cohort's memory.
	maxCohort = 320
	// collectFor is how long a cohort collects members before it may close with fewMembers.
	collectFor = time.Second
	fewMembers = 8
	// leastMembers suffice to detect an effect larger than their spread.
	leastMembers = 5
	// judged is the share of a cohort that has to be known. The slowest fifth may take any time
	// and says little about load.
	judged    = 0.8
	leastLost = 3 // lost members from which a cohort may be read at once
	hardlyAny = 5 // up to one in five is hardly any
	// muchLost is the share of lost work from which the latency of the rest is misleadingly low.
	muchLost = 0.25
)

func (c *cohort) begin(first uint64, want int, usual, slow float64, now time.Duration) {
	want = min(max(want, 1), maxCohort)
	*c = cohort{first: first, want: want, usual: usual, slow: slow, start: now, last: now, exact: c.exact[:0], atLeast: c.atLeast[:0]}
}

// takes reports whether an admission is a member.
func (c *cohort) takes(seq uint64) bool { return seq >= c.first && !c.closed }

// admit adds a member.
func (c *cohort) admit(at time.Duration, load Load, enforced int, measured bool) {
	c.members++
	if !measured {
		c.skipped++
	}
	c.closed = c.measured() >= c.want
	c.last = at
	c.inFlight += float64(load.InFlight)
	c.enforced += float64(enforced)
	if load.Queued > 0 || load.InFlight >= max(enforced, 2) { // a single slot is always in use while work runs
		c.full++
	}
}

func (c *cohort) has(seq uint64) bool { return seq >= c.first && seq < c.first+uint64(c.members) }

// skips reports whether the end of a member of a class that is not measured is left out. The member
// counts only if it was lost or hit its deadline. In a class not yet known, any member without success
// counts.
func (c *cohort) skips(log float64, o Outcome, known bool) bool {
	if o == Deadline || c.isLost(log, o) || !known && o != Success {
		c.skipped = max(c.skipped-1, 0)
		return false
	}
	c.gone++
	c.skipped = max(c.skipped, c.gone) // an owner may report the class only at the end
	return true
}

// measured is the number of members in measured classes.
func (c *cohort) measured() int { return c.members - c.skipped }

// end enters the end of a member. log is the logarithm of the time, net of the offset of the class.
func (c *cohort) end(log float64, o Outcome) {
	if o == Success {
		if cap(c.exact) < c.want { // not at the start: most limiters of a family have few requests
			c.exact = slices.Grow(c.exact, c.want-len(c.exact))
		}
		c.exact = enter(c.exact, log)
		return
	}
	if c.isLost(log, o) {
		c.lost++
	} else if o == Deadline {
		c.early++
	} else if o == Canceled {
		c.left++
	}
	switch o {
	case Deadline, Canceled:
		c.atLeast = enter(c.atLeast, log)
	case Overload:
		c.refused++
		c.silent++
	default:
		c.silent++
	}
}

// isLost reports whether the work may be lost to overload in the backend. Work is lost if the
// backend refused it, its deadline passed after more than the usual time, or its caller left
// after the work had become clearly slow. A deadline that ends work sooner had mostly run out
// before the start. A caller that leaves sooner has other reasons.
func (c *cohort) isLost(log float64, o Outcome) bool {
	return o == Overload || o == Deadline && log > c.usual || o == Canceled && log > c.slow
}

// enter adds a logarithm to sorted ones.
func enter(logs []float64, log float64) []float64 {
	i, j := 0, len(logs)
	for i < j {
		if m := int(uint(i+j) >> 1); logs[m] < log {
			i = m + 1
		} else {
			j = m
		}
	}
	logs = append(logs, log)
	copy(logs[i+1:], logs[i:])
	logs[i] = log
	return logs
}

// losses is the number of lost members. If no member succeeded, every deadline counts as a loss,
// because the usual time is no longer known.
func (c *cohort) losses() int {
	if len(c.exact) == 0 {
		return c.lost + c.early
	}
	return c.lost
}

// allLosses is losses at the time of a reading. If hardly any member succeeded, departed callers
// count as losses too: some callers leave for other reasons, but not nearly all callers. Departed
// callers end first, so before most members have ended they would look like nearly all callers.
func (c *cohort) allLosses() int {
	if len(c.exact) <= c.ended()/hardlyAny {
		return c.losses() + c.left
	}
	return c.losses()
}

// ended is the number of members that have ended with an exact or censored time.
func (c *cohort) ended() int { return len(c.exact) + len(c.atLeast) }

// allSilent reports whether every member ended without a time.
func (c *cohort) allSilent() bool { return c.closed && c.silent >= c.measured() }

// stale reports whether most recent admissions are of classes that are not measured.
func (c *cohort) stale(now time.Duration) bool {
	return now-c.start > collectFor && c.skipped > c.measured()
}

// gathers reports whether the cohort is too young for a reading, whatever its members did.
func (c *cohort) gathers(now time.Duration) bool {
	return !c.closed && now-c.start < collectFor && c.lost+c.early < leastLost
}

// read fills in r and returns true if the cohort can be judged. of bounds the class offsets of
// running members. If overdue is set, running members are not waited for: if fewer than half of
// the members run, the running members are left out as work that takes long at any load.
func (c *cohort) read(now time.Duration, of *classes, overdue bool, r *reading) bool {
	counted := c.measured() - c.silent
	if slow := c.losses() - c.refused; slow >= max(leastLost, c.want/4) && 4*slow >= 3*c.ended() {
		// The fastest members end first; if they are lost, so are the slower ones.
		*r = c.reading(now, c.ended())
		return true
	}
	if !c.closed {
		if now-c.start < collectFor || counted < fewMembers {
			return false
		}
		c.closed, c.want = true, c.measured()
	}
	if counted == 0 && c.refused > 0 { // only refusals are known
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
	if len(c.atLeast) == 0 && youngest < c.exact[fourInFive(counted)-1] { // a fast path: read runs at each end
		return false
	}
	*r = c.reading(now, counted)
	return !r.blind && youngest >= c.exact[int(r.n)-1]
}

// fourInFive is how many of n members have to be known: the share judged, rounded up.
func fourInFive(n int) int { return (4*n + 4) / 5 }

// reading computes the reading of counted members from the known times.
func (c *cohort) reading(now time.Duration, counted int) (r reading) {
	counted = max(counted, c.ended()) // an end may be reported twice
	var sum, squares, mass float64
	alive := 1.0 // the share of members that take longer than the times so far
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
	fast := c.exact[:(len(c.exact)+3)/4]
	for _, x := range fast {
		r.fastest += x / float64(len(fast))
	}
	if rest := judged - mass; rest > 1e-9 && len(c.atLeast) > 0 {
		x := c.atLeast[len(c.atLeast)-1] // the rest takes at least the longest censored time
		sum, squares, mass = sum+rest*x, squares+rest*x*x, mass+rest
		r.open = true
	}
	if r.blind = r.n == 0; r.blind {
		r.n = 1
	}
	mass = max(mass, 1e-9)
	r.at, r.elapsed = now, now-c.start
	r.logTime = sum / mass
	r.spread = math.Sqrt(max(squares/mass-r.logTime*r.logTime, 1e-6))
	r.inFlight = max(c.inFlight/float64(c.members), 1)
	r.enforced = c.enforced / float64(c.members)
	r.full = 2*c.full > c.members
	all := float64(max(counted+c.refused, 1))
	r.lost, r.refused = float64(c.allLosses())/all, float64(c.refused)/all
	if gathered := c.last - c.start; gathered > 0 && c.members > 4 {
		r.perSecond = float64(c.members-1) / gathered.Seconds()
	}
	return r
}
