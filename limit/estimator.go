package limit

import (
	"math"
	"time"
)

// estimator turns admissions and ends into readings, one cohort after another. A cohort begins
// once the running work fits into the limit.
type estimator struct {
	aim           *aim
	cohort        cohort
	classes       classes
	admitted      uint64        // number of the latest admission
	work          float64       // work admitted since the cohort began, as a sum of class weights
	count         float64       // admissions since the cohort began, of any class
	squares       float64       // sum of the squared weights behind work
	done          float64       // work done since the cohort began, as a sum of class weights
	reweighed     bool          // class weights changed: older sums of weights cannot be compared
	forgotten     bool          // the reference class was forgotten
	draining      bool          // waiting until the running work fits into the limit
	since         time.Duration // start of draining
	idle          time.Duration // part of the cohort's time in which nothing ran
	lastEnd       time.Duration // time of the last end
	quiet         bool          // nothing has run since lastEnd
	overdueFactor float64       // factor on the time after which a cohort is overdue: it doubles with each overdue cohort that gave no reading
	usual         float64       // usual time of work in nanoseconds; 0: not known
	spread        float64       // standard deviation of the logarithm of a time
	readings      float64       // number of readings behind spread
	wasted        float64       // recent share of wasted slot time, which logTime includes
	rate          float64       // admissions per second
	latest        reading
}

const (
	firstSpread = 0.3 // initial spread, before any measurement
	spreadTimes = 3   // times beyond the first from which a reading's spread counts in full
	// A cohort is overdue when overdueTimes usual times, and at least leastOverdue, have passed
	// since its last admission. An overdue cohort is not waited for: one hanging request must not
	// stop the law. If half of the members or more hang, the cohort is dropped and the next may take
	// twice as long, because a backend that became ten times slower looks the same.
	overdueTimes = 10
	leastOverdue = 2 * time.Second
	mostOverdue  = time.Hour
	atOnce       = 0.1 // a cohort has at least the admissions of this many seconds
	mostWasted   = 0.9 // keeps the logarithm finite
)

func newEstimator(aim *aim) estimator {
	return estimator{aim: aim, spread: firstSpread, overdueFactor: 1, quiet: true}
}

// enforced is how many slots may be in use under the law's limit.
func (l Load) enforced(limit int) int {
	if l.Enforced > 0 {
		return l.Enforced
	}
	return limit
}

// calm reports whether slots are free and nobody waits.
func (l Load) calm(limit int) bool { return l.Queued == 0 && l.InFlight < l.enforced(limit) }

func (e *estimator) admit(at time.Duration, load Load, limit int) {
	e.admitted++
	class := load.Class % Classes
	weight := e.classes.weight(class)
	e.count++
	e.work, e.squares = e.work+weight, e.squares+weight*weight
	if e.quiet {
		e.idle, e.quiet = e.idle+at-e.lastEnd, false
	}
	if !e.draining && e.cohort.takes(e.admitted) {
		e.cohort.admit(at, load, load.enforced(limit), e.classes.measured(class) || class == 0 && !e.classes.of[0].known)
	}
}

// event is the effect of the end of a piece of work on a cohort.
type event uint8

const (
	nothing event = iota
	restart       // the cohort is dropped and the next one begins
	read          // the cohort gave a reading
)

// observe enters the end of a piece of work and stores a reading in latest. rescaled reports that
// classes of work were found to differ, so earlier measurements cannot be compared.
func (e *estimator) observe(s *Sample, load Load, limit int) (ev event, rescaled bool) {
	e.lastEnd, e.quiet = s.End, load.InFlight == 0
	if e.draining {
		return e.drained(s.End, load, limit), false
	}
	if e.forgotten {
		e.forgotten, e.reweighed = false, true
		return restart, false
	}
	class := s.Class % Classes
	if s.Outcome == Success {
		e.done += e.classes.weight(class)
	}
	if member := e.cohort.has(s.Seq); member || s.Outcome == Success && e.classes.learns(class) {
		log := logOf(s.End - s.Start)
		if stale := e.cohort.stale(s.End); s.Outcome == Success && (stale || !e.classes.again(class, log)) {
			var changed bool
			if changed, rescaled = e.classes.learn(class, log, load.calm(limit), stale); changed {
				e.reweighed = true
				return restart, rescaled
			}
		}
		net := log - e.classes.of[class].offset // of the offset as learned now
		if member && (e.classes.measured(class) || !e.cohort.skips(net, s.Outcome, e.classes.of[class].known)) {
			e.cohort.end(net, s.Outcome)
		}
	}
	if e.cohort.gathers(s.End) {
		return nothing, false
	}
	return e.read(s.End), false
}

// drained restarts the cohort once the running work fits into the limit, or has had the time to.
func (e *estimator) drained(now time.Duration, load Load, limit int) event {
	if load.InFlight <= max(limit, load.Enforced) || e.overdue(now, e.since) {
		return restart
	}
	return nothing
}

// read reads the cohort if possible, and drops an overdue one and one that can give no reading.
func (e *estimator) read(now time.Duration) event {
	late := e.cohort.closed && e.overdue(now, e.cohort.last)
	switch {
	case e.cohort.read(now, &e.classes, late, &e.latest):
		e.latest.count, e.latest.work, e.latest.workSize = e.count, e.work, 0
		if e.work > 0 {
			e.latest.workSize = e.work * e.work / e.squares
		}
		if e.latest.enforced == 1 && e.idle < e.latest.elapsed/4 { // also if the owner reports no waiting callers
			e.latest.full = true
		}
		e.latest.elapsed = max(e.latest.elapsed-e.idle, 0)
		if e.latest.elapsed > 0 {
			e.latest.done = e.done / e.latest.elapsed.Seconds()
		}
		e.enter(&e.latest)
		return read
	case late:
		e.overdueFactor = min(2*e.overdueFactor, float64(mostOverdue))
		return restart
	case e.cohort.allSilent():
		return restart
	}
	return nothing
}

func (e *estimator) overdue(now, since time.Duration) bool {
	return float64(now-since) > min(e.overdueFactor*max(overdueTimes*e.usual, float64(leastOverdue)), float64(mostOverdue))
}

// enter updates the usual time and the spread from a reading. It also adds wasted slot time to
// logTime, since useful work effectively took longer. Lost work wastes slot time.
func (e *estimator) enter(r *reading) {
	if !r.blind {
		e.readings++
		// One time has no spread, and two or three times estimate the spread poorly. If most
		// work fails, readings have few times, and chance would pass for certainty.
		e.spread += max(0.2, 1/e.readings) * min((r.n-1)/spreadTimes, 1) * (r.spread - e.spread)
		e.usual = math.Exp(r.logTime)
	}
	if r.perSecond > 0 {
		e.rate = r.perSecond
	}
	e.overdueFactor = 1
	wasted := min(r.lost, mostWasted)
	r.logTime -= math.Log(1 - wasted)
	e.wasted = max(wasted, e.wasted+0.2*(wasted-e.wasted))
}

// drain makes the estimator wait until the running work fits into the limit.
func (e *estimator) drain(now time.Duration) {
	if !e.draining {
		e.draining, e.since = true, now
	}
}

// begin starts a cohort of about want members after skip admissions. usual and slow are the
// logarithms of the usual time and of the time from which work is clearly slow.
func (e *estimator) begin(now time.Duration, want, usual, slow float64, skip uint64) {
	e.draining, e.count, e.work, e.squares, e.done, e.idle = false, 0, 0, 0, 0, 0
	// Four fifths of a multiple of five is a whole number, so cohorts of any size leave out the
	// same share.
	e.cohort.begin(e.admitted+1+skip, int(math.Ceil(want/5))*5, usual, slow, now)
}

// error is the standard error of a mean measured with n times. Leaving out the slowest fifth
// raises the error by a quarter. The wasted share has a random error too: for N members the
// logarithm of the remaining share has the binomial variance wasted/(1-wasted)/N, and n is four
// fifths of N(1-wasted). So 2 wasted of 20 are weak evidence.
func (e *estimator) error(n float64) float64 {
	return 1.25 * e.deviation() / math.Sqrt(max(n, 1))
}

// deviation is the standard deviation of a single time, including the wasted share.
func (e *estimator) deviation() float64 {
	return math.Sqrt(e.spread*e.spread + judged/(1.25*1.25)*e.wasted)
}

// between is the standard error of the difference of two means with a and b times.
func (e *estimator) between(a, b float64) float64 { return math.Hypot(e.error(a), e.error(b)) }

// generation is the usual size of a cohort: at least the limit up to maxCohort, the admissions of 0.1 s and enough
// times to know a mean to a tenth. Above the limit it is at most the admissions of 0.7 s. Smaller
// cohorts of quick work would decide a hundred times a second, sometimes by chance.
func (e *estimator) generation(limit float64) float64 {
	want := max(16, limit, math.Pow(2*e.deviation()/0.1, 2))
	if e.rate > 0 {
		want = min(max(want, atOnce*e.rate), max(0.7*e.rate, 12, limit))
	}
	return min(want, maxCohort)
}

// mean is a running mean of readings that forgets old readings.
type mean struct{ value, n float64 }

// one enters the value of one sample. The mean then stands for at most most samples.
func (m *mean) one(value, most float64) {
	if m.n < most {
		m.n++
	}
	m.value += 1 / m.n * (value - m.value)
}

// add enters the value of n samples. The mean then stands for at most max(most, n) samples.
func (m *mean) add(value, n, most float64) {
	if n <= 0 {
		return
	}
	if most < n {
		most = n
	}
	if m.n += n; m.n > most {
		m.n = most
	}
	m.value += n / m.n * (value - m.value)
}
