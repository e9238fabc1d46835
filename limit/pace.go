package limit

import "math"

// pace is how long work occupies a slot in the mean, by Little's law: a second opinion
// on a trial. Where a backend serves what came last first, as a scheduler does with
// goroutines, the fastest four in five see no queue, however long it is; the mean does
// not lie. It says less than they do: where tails are heavy it needs many more times to
// be as sure.
type pace struct {
	seconds  float64 // that it was watched
	occupied float64 // slots, times those
	work     float64 // of what was admitted and not lost, in that of the reference class
	n        float64 // admissions, as many of one weight as say as much
	latest   float64 // logarithm of the mean in the latest reading,
	of       float64 // and its admissions
}

// roughness is the spread of the mean of one piece of work, from how much readings under
// one limit differ: heavy tails are in it, and a machine that does other things.
type roughness struct{ variance, n float64 }

const (
	paceDecides, paceVisible = 1.5, 2.0 // standard errors, as of a test
	paceSpread               = 2.0      // of a time, at least, times that of the fastest four in five
	leastPaceSpread          = 0.25
	roughReadings            = 12   // are remembered
	roughAtOnce              = 9.0  // times what is known: a new variance counts as that much, at most
	paceAfter                = 3    // generations of work: in the first, what ran before ends
	paceForgets              = 1000 // admissions
	paceCohorts              = 4    // times as many cohorts as usual a cut may take, while latency and pace disagree
)

func (p *pace) add(r reading, rough *roughness) {
	if r.work <= 0 || r.took <= 0 {
		return
	}
	work := r.work * (1 - min(r.lost, mostWasted))
	now := math.Log(r.took.Seconds() * r.inFlight / work)
	if p.of > 0 {
		rough.add((now - p.latest) * (now - p.latest) / (1/p.of + 1/r.admitted))
	}
	p.latest, p.of = now, r.admitted
	p.seconds += r.took.Seconds()
	p.occupied += r.took.Seconds() * r.inFlight
	p.work += work
	if p.n += r.admitted; p.n > paceForgets {
		p.seconds, p.occupied, p.work, p.n = p.seconds/2, p.occupied/2, p.work/2, p.n/2
	}
}

// add enters a variance. A change of the backend is in one of them and is not roughness.
func (o *roughness) add(variance float64) {
	o.n = min(o.n+1, roughReadings)
	o.variance += (min(variance, roughAtOnce*max(o.variance, leastPaceSpread*leastPaceSpread)) - o.variance) / o.n
}

// spread is at least what follows from that of the fastest four in five.
func (o *roughness) spread(fastest float64) float64 {
	return max(leastPaceSpread, paceSpread*fastest, math.Sqrt(o.variance))
}

// known reports whether enough was watched.
func (p *pace) known() bool {
	return p.n >= leastMembers && p.work > 0 && p.n*p.seconds > paceAfter*p.occupied
}

// against is by how much longer work takes than it did before, as a logarithm, and the
// standard error, which is 0 if that is not known. spread is that of one time.
func (p *pace) against(before *pace, spread float64) (longer, err float64) {
	if !p.known() || !before.known() {
		return 0, 0
	}
	longer = math.Log(p.occupied / p.work * before.work / before.occupied)
	return longer, spread * math.Sqrt(1/p.n+1/before.n)
}
