package limit

import "math"

// pace is the mean slot time of work by Little's law: a second measure for a trial. If a backend
// serves the newest work first, as the Go scheduler may do, the fastest four in five never show
// a queue, however long it is. The mean slot time does show the queue. With heavy tails the pace
// needs many more times for the same standard error.
type pace struct {
	seconds  float64 // time covered
	occupied float64 // slot-seconds in use
	work     float64 // work admitted and not lost, in units of the reference class
	n        float64 // effective sample size of the admissions
	latest   float64 // logarithm of the mean slot time in the latest reading
	of       float64 // effective sample size of the latest reading
}

// roughness is the spread of one piece of work by the pace, from the differences of readings under
// one limit. It includes heavy tails and other load on the machine.
type roughness struct{ variance, n float64 }

const (
	paceDecides, paceVisible = 1.5, 2.0 // standard errors, like follows and visible of criteria
	paceSpread               = 2.0      // least spread of one time, times the spread of the fastest four in five
	leastPaceSpread          = 0.25
	roughReadings            = 12   // most readings in the mean variance
	roughAtOnce              = 9.0  // cap on a new variance, as a multiple of the mean variance
	paceAfter                = 3    // generations until the pace is known: in the first, work admitted under the old limit ends
	paceForgets              = 1000 // least admissions after which all sums are halved
)

func (p *pace) add(r reading, rough *roughness) {
	if r.work <= 0 || r.elapsed <= 0 {
		return
	}
	work := r.work * (1 - min(r.lost, mostWasted))
	now := math.Log(r.elapsed.Seconds() * r.inFlight / work)
	if p.of > 0 {
		rough.add((now - p.latest) * (now - p.latest) / (1/p.of + 1/r.workSize))
	}
	p.latest, p.of = now, r.workSize
	p.seconds += r.elapsed.Seconds()
	p.occupied += r.elapsed.Seconds() * r.inFlight
	p.work += work
	if p.n += r.workSize; p.n > max(paceForgets, 2*paceAfter*r.inFlight) { // else the pace of many slots is never known
		p.seconds, p.occupied, p.work, p.n = p.seconds/2, p.occupied/2, p.work/2, p.n/2
	}
}

// add enters a variance, capped, because a change of the backend makes one variance large.
func (o *roughness) add(variance float64) {
	o.n = min(o.n+1, roughReadings)
	o.variance += (min(variance, roughAtOnce*max(o.variance, leastPaceSpread*leastPaceSpread)) - o.variance) / o.n
}

// spread is the spread of one time, at least paceSpread times that of the fastest four in five.
func (o *roughness) spread(fastest float64) float64 {
	return max(leastPaceSpread, paceSpread*fastest, math.Sqrt(o.variance))
}

// known reports whether the pace covers enough admissions.
func (p *pace) known() bool {
	return p.n >= leastMembers && p.work > 0 && p.n*p.seconds > paceAfter*p.occupied
}

// compareWith returns the logarithm of the ratio of p to before, and its standard error. The standard
// error is 0 if either pace is not known. spread is the spread of one time.
func (p *pace) compareWith(before *pace, spread float64) (longer, err float64) {
	if !p.known() || !before.known() {
		return 0, 0
	}
	longer = math.Log(p.occupied / p.work * before.work / before.occupied)
	return longer, spread * math.Sqrt(1/p.n+1/before.n)
}
