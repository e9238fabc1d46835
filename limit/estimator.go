package limit

import (
	"math"
	"time"
)

// estimator turns admissions and ends into readings: one cohort after another,
// each begun when no more run than the limit under test allows.
type estimator struct {
	aim       *aim
	cohort    cohort
	classes   classes
	admitted  uint64  // requests, the number of the latest
	work      float64 // admitted since the cohort began, in that of the reference class
	count     float64 // admitted since the cohort began, of any class
	squares   float64 // the sum of the squares behind work
	done      float64 // work done since the cohort began, in that of the reference class
	reweighed bool    // what classes weigh has changed: sums of it cannot be compared
	changed   bool    // the class that the others are compared with was forgotten
	draining  bool    // until no more run than may
	since     time.Duration
	idle      time.Duration // of the cohort's time, in which nothing ran
	empty     time.Duration // when the last of what ran ended,
	quiet     bool          // and nothing has run since
	bound     float64       // how often the usual bound a cohort may take
	usual     float64       // how long work takes, nanoseconds; 0: not known
	spread    float64       // of the logarithm of a time
	readings  float64       // behind it
	wasted    float64       // share of the slots' work, of late, that is in the level and came to nothing
	rate      float64       // admissions per second
	each      mean          // how many times that of the reference class work takes, one piece in the mean
	latest    reading
	losses    losses
}

const (
	firstSpread = 0.3 // of times, before any is measured
	spreadTimes = 3   // more than one, until a reading's own spread counts in full
	// A cohort whose last member was admitted that many of the usual times ago, and
	// at least leastOverdue, is not waited for: one request that hangs must not stop
	// the law. If more than half of it hangs it is given up, and the next may take
	// twice as long, because a backend that became ten times slower looks like that.
	overdueTimes = 10
	leastOverdue = 2 * time.Second
	mostOverdue  = time.Hour
	severalTimes = 4
	eachReadings = 10  // are in the mean of what a piece takes: a cohort has few of the long ones, by chance none
	atOnce       = 0.1 // of a second
	mostWasted   = 0.9 // so that the logarithm stays finite
)

func newEstimator(aim *aim) estimator {
	return estimator{aim: aim, spread: firstSpread, bound: 1, quiet: true}
}

// enforced is how many slots may be in use, if the law wants that many.
func (l Load) enforced(limit int) int {
	if l.Enforced > 0 {
		return l.Enforced
	}
	return limit
}

func (e *estimator) admit(at time.Duration, load Load, limit int) {
	e.admitted++
	class := load.Class % Classes
	weight := e.classes.weight(class)
	e.count++
	e.work, e.squares = e.work+weight, e.squares+weight*weight
	if e.quiet {
		e.idle, e.quiet = e.idle+at-e.empty, false
	}
	if !e.draining {
		e.cohort.admit(e.admitted, at, load, load.enforced(limit), e.classes.measured(class) || class == 0 && !e.classes.of[0].known)
	}
}

// event is what the end of a piece of work makes of a cohort.
type event uint8

const (
	nothing event = iota
	restart       // it has to begin anew
	read          // there is a reading
)

// observe takes the end of a piece of work; a reading is in latest. rescaled says
// that classes of work were found to differ: what was measured before cannot be
// compared.
func (e *estimator) observe(s *Sample, load Load, limit int) (ev event, rescaled bool) {
	e.empty, e.quiet = s.End, load.InFlight == 0
	if e.draining {
		if load.InFlight <= max(limit, load.Enforced) || e.overdue(s.End, e.since) {
			return restart, false
		}
		return nothing, false
	}
	if e.changed {
		e.changed, e.reweighed, e.each = false, true, mean{}
		return restart, false
	}
	class := s.Class % Classes
	if s.Outcome == Success {
		e.done += e.classes.weight(class)
	}
	e.losses.add(s, e.cohort.isLost(logOf(s.End-s.Start)-e.classes.of[class].offset, s.Outcome))
	if member := e.cohort.has(s.Seq); member || s.Outcome == Success && e.classes.learns(class) {
		log := logOf(s.End - s.Start)
		if s.Outcome == Success {
			calm := load.Queued == 0 && load.InFlight < load.enforced(limit)
			var changed bool
			stale := s.End-e.cohort.start > patience && e.cohort.skipped > e.cohort.measured()
			if changed, rescaled = e.classes.learn(class, log, calm, stale); changed {
				e.reweighed, e.each = true, mean{}
				return restart, rescaled
			}
		}
		net := log - e.classes.of[class].offset
		switch {
		case !member:
		case e.classes.measured(class):
			e.cohort.end(net, s.Outcome)
		default:
			e.cohort.endSkipped(net, s.Outcome, e.classes.of[class].known)
		}
	}
	late := e.cohort.closed && e.overdue(s.End, e.cohort.last)
	switch {
	case e.cohort.read(s.End, &e.classes, late, &e.latest):
		e.latest.count, e.latest.work, e.latest.admitted = e.count, e.work, 0
		if e.work > 0 {
			e.latest.admitted = e.work * e.work / e.squares
		}
		if e.latest.enforced == 1 && e.idle < e.latest.took/4 { // also where an owner says of nobody that they wait
			e.latest.saturated = true
		}
		e.latest.took = max(e.latest.took-e.idle, 0)
		if e.latest.took > 0 {
			e.latest.done = e.done / e.latest.took.Seconds()
		}
		e.latest.lost = max(e.latest.lost, e.losses.share())
		e.enter(&e.latest)
		return read, rescaled
	case late:
		e.bound = min(2*e.bound, float64(mostOverdue))
		return restart, rescaled
	case e.cohort.allSilent():
		return restart, rescaled
	}
	return nothing, rescaled
}

func (e *estimator) overdue(now, since time.Duration) bool {
	return float64(now-since) > min(e.bound*max(overdueTimes*e.usual, float64(leastOverdue)), float64(mostOverdue))
}

// enter learns from a reading how long work takes and how much times differ. Work
// refused below used slots too, so useful work effectively took longer. Where jobs done
// in time are what counts, so did all that is lost.
func (e *estimator) enter(r *reading) {
	if !r.blind {
		e.readings++
		// One time has no spread, and two or three say little of it: where most work
		// fails there are no more, and chance would pass for certainty.
		e.spread += max(0.2, 1/e.readings) * min((r.n-1)/spreadTimes, 1) * (r.spread - e.spread)
		e.usual = math.Exp(r.level)
	}
	if r.count > 0 {
		e.each.add(r.work/(r.count*e.classes.weight(e.classes.reference)), 1, eachReadings)
	}
	if r.perSecond > 0 {
		e.rate = r.perSecond
	}
	e.bound = 1
	wasted := r.refused
	if e.aim.jobs {
		wasted = r.lost
	}
	wasted = min(wasted, mostWasted)
	r.level -= math.Log(1 - wasted)
	e.wasted = max(wasted, e.wasted+0.2*(wasted-e.wasted))
}

// drain makes the estimator wait until no more run than may.
func (e *estimator) drain(now time.Duration) {
	if !e.draining {
		e.draining, e.since = true, now
	}
}

// begin starts a cohort of about want members after skip admissions. Work usually
// takes the exponential of usual, and clearly too long above that of slow.
func (e *estimator) begin(now time.Duration, want, usual, slow float64, skip uint64) {
	e.draining, e.count, e.work, e.squares, e.done, e.idle = false, 0, 0, 0, 0, 0
	// Of a multiple of five, four in five is exact: small cohorts and large ones
	// leave out the same share.
	e.cohort.begin(e.admitted+1+skip, int(math.Ceil(want/5))*5, usual, slow, now)
}

// error is the standard error of a level measured with n times. Leaving out the
// slowest fifth costs a quarter more than the spread says. Chance is in the wasted
// share too: of N members the logarithm of what is left has the binomial variance
// wasted/(1-wasted)/N, and n is four in five of N(1-wasted). So 2 of 20 say little.
func (e *estimator) error(n float64) float64 {
	return 1.25 * e.deviation() / math.Sqrt(max(n, 1))
}

// deviation is how much a single time says too much or too little, the share of
// waste included.
func (e *estimator) deviation() float64 {
	return math.Sqrt(e.spread*e.spread + judged/(1.25*1.25)*e.wasted)
}

// several reports whether all work takes several times as long as that which is measured:
// what that waits is not what a queue costs.
func (e *estimator) several() bool { return e.each.level > severalTimes }

// between is the standard error of the difference of two levels.
func (e *estimator) between(a, b float64) float64 { return math.Hypot(e.error(a), e.error(b)) }

// generation is how many members a cohort takes: what runs at once anyway, enough to
// know a level to a tenth, if they come within a second, and what comes in a tenth of a
// second. Smaller cohorts of quick work would decide a hundred times a second, some of
// them by chance.
func (e *estimator) generation(limit float64) float64 {
	want := max(16, limit, math.Pow(2*e.deviation()/0.1, 2))
	if e.rate > 0 {
		want = min(max(want, atOnce*e.rate), max(0.7*e.rate, 12, limit))
	}
	return min(want, maxCohort)
}

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
