package capacity

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Search decides which rate is tried next. It is pure: measure what Next returns, give it
// to Add, until Next has no more.
//
// It starts gently and doubles the rate until the SLO breaks, which is believed only if it
// breaks twice. Between a rate that kept the SLO and one that broke it the next one is
// where the service's own goodput under too much load says that the knee is, or halfway;
// last, both ends are tried once more, for longer. After every broken SLO the service has
// time to drain: requests at a low rate, until they take as long as in the beginning.
type Search struct {
	Setup
	rungs   []*rung // by rate
	points  []Point // without those of settling
	last    Probe   // that Next returned
	spent   time.Duration
	settle  int     // probes at a low rate since the last broken one, and one; 0: latency is back
	guess   float64 // the first rate inside of the bracket, by what the service could do
	slow    float64 // a rate after which latency did not come back
	ceiling string  // why the generator is the bound, if it is
	void    string  // why the last probe said nothing about the service, if it did not
	ended   Ending
}

// Setup is what a search has to keep.
type Setup struct {
	SLO  SLO
	Max  float64       // no rate is higher, requests a second
	Time time.Duration // of all probes, draining included
}

// Ending is why a search ended.
type Ending string

// The endings.
const (
	Narrowed    Ending = "narrowed"    // the interval is as narrow as it should be
	NoTime      Ending = "time"        // the time was over before that
	MaxRate     Ending = "max-rate"    // the SLO was kept up to Setup.Max
	Generator   Ending = "generator"   // the generator could not send more, or its machine ran out of something
	NeverKept   Ending = "never kept"  // the SLO was broken at every rate
	Interrupted Ending = "interrupted" // by the user
)

const (
	gentle      = 10.0 // the first rate
	least       = 1.0  // the lowest rate
	precision   = 1.03 // the interval is narrow enough: 3 %
	wideBracket = 1.2  // more is the beginning of the search
	modesty     = 0.97 // of what a service could do under too much load, to begin with
	settleFor   = 500 * time.Millisecond
	settles     = 10 // at most
)

// rung is one rate with all that was measured at it.
type rung struct {
	rate        float64
	points      []Point
	kept, broke int
	// Seconds of both. A long probe outweighs short ones that the machine may have disturbed.
	keptFor, brokeFor float64
	proven            bool // kept for as long as a proof takes
	tested            bool // broken in a probe that was not short
}

// broken reports whether the SLO is believed to be broken: twice, and for longer than kept.
func (r *rung) broken() bool { return r.broke > 1 && r.brokeFor > r.keptFor }

// doubtful is a rate that broke the SLO once: it has to do so again before it is believed.
func (r *rung) doubtful() bool { return r.broke == 1 && r.kept == 0 }

// sure reports whether the SLO was kept once more for longer.
func (r *rung) sure() bool { return r.proven && r.keptFor > r.brokeFor }

// answered reports whether there was a good answer at all.
func (r *rung) answered() bool {
	return slices.ContainsFunc(r.points, func(p Point) bool { return p.OK > 0 })
}

// could is the goodput under a load that broke the SLO.
func (r *rung) could() float64 {
	sum := 0.0
	for _, p := range r.points {
		sum += p.Goodput / float64(len(r.points))
	}
	return sum
}

func (r *rung) last() *Point { return &r.points[len(r.points)-1] }

// Next returns the next probe, or false when the search is over.
func (s *Search) Next() (Probe, bool) {
	if s.ended != "" {
		return Probe{}, false
	}
	p, ending := s.next()
	if ending == "" && s.spent+p.For > s.Time {
		ending = NoTime
	}
	if s.ended = ending; ending != "" {
		return Probe{}, false
	}
	s.last = p
	return p, true
}

func (s *Search) next() (Probe, Ending) {
	if s.settle > 0 {
		return Probe{s.low(), settleFor, Settle}, ""
	}
	if i := slices.IndexFunc(s.rungs, (*rung).doubtful); i >= 0 {
		r := s.rungs[i]
		return Probe{r.rate, seconds(r.last().Seconds), Confirm}, ""
	}
	low, high := s.bracket()
	lowest := min(least, s.Max)
	switch {
	case low == nil && high == nil:
		return s.probe(Grow, min(gentle, s.Max)), ""
	case low == nil && (high.rate <= lowest || !high.answered()):
		return Probe{}, NeverKept
	case low == nil:
		return s.probe(Grow, max(high.rate/3.2, lowest)), ""
	case high == nil && low.rate < s.Max:
		return s.probe(Grow, min(2*low.rate, s.Max)), ""
	}
	proof := s.probe(Prove, low.rate)
	if wide(low, high) && s.ceiling == "" {
		if p := s.probe(s.between(low, high)); s.spent+2*p.For+proof.For <= s.Time { // it may have to be confirmed
			return p, ""
		}
	}
	switch {
	case !low.sure():
		return proof, ""
	case s.ceiling != "":
		return Probe{}, Generator
	case high == nil:
		return Probe{}, MaxRate
	case wide(low, high):
		return Probe{}, NoTime
	case !high.tested:
		return s.probe(Prove, high.rate), ""
	}
	return Probe{}, Narrowed
}

// wide reports whether the interval is wider than it should be.
func wide(low, high *rung) bool { return high != nil && high.rate/low.rate > precision }

// between is the rate to try inside of the bracket. What the service could do when too much
// was asked of it says where the knee is; at first a little less is tried, because exactly
// there the SLO is kept or not by chance. If that misleads or says nothing the rate is
// halfway, and soon, as long as the bracket is wide; and as its lower end was kept for a
// moment only, that is tried again first.
func (s *Search) between(low, high *rung) (Purpose, float64) {
	width, could := high.rate/low.rate, high.could()
	wide := width > wideBracket
	misled := wide && s.guess >= high.rate
	if wide {
		could *= modesty
	}
	switch {
	case misled && low.keptFor < (s.Time/shares[Halve]).Seconds():
		return Halve, low.rate
	case could > low.rate && could < high.rate && !misled:
		rate := low.rate * math.Pow(width, min(max(math.Log(could/low.rate)/math.Log(width), .25), .75))
		if wide {
			s.guess = rate
		}
		return Narrow, rate
	case wide:
		return Halve, low.rate * math.Sqrt(width)
	}
	return Narrow, low.rate * math.Sqrt(width)
}

// shares of the time that a probe takes, so that a search with more time is more exact.
var shares = map[Purpose]time.Duration{Grow: 90, Halve: 26, Narrow: 9, Prove: 9}

// probe is not shorter than some answers take, and never without some requests.
func (s *Search) probe(purpose Purpose, rate float64) Probe {
	length := max(s.Time/shares[purpose], min(2*s.SLO.widest(), s.Time/30))
	return Probe{rate, max(length, min(seconds(5/rate), s.Time/12)), purpose}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// bracket is the lowest rate that broke the SLO, and the highest below it that kept it.
func (s *Search) bracket() (low, high *rung) {
	for _, r := range s.rungs {
		if r.broken() {
			return low, r
		}
		if r.kept > 0 {
			low = r
		}
	}
	return low, nil
}

// low is the rate at which latency comes back.
func (s *Search) low() float64 {
	low, _ := s.bracket()
	if low == nil {
		return min(gentle, s.Max)
	}
	return min(max(low.rate/20, gentle), low.rate)
}

// Add takes what was measured for the last probe, and how long that took in all.
func (s *Search) Add(p Point, took time.Duration) {
	s.spent += max(took, s.last.For)
	p.Purpose, p.Rate = s.last.Purpose, s.last.Rate
	p.judge(s.SLO)
	low, _ := s.bracket()
	if p.Purpose == Settle {
		switch s.settle++; {
		case s.settled(p):
			s.settle = 0
		case s.settle > settles:
			s.settle, s.slow = 0, s.points[len(s.points)-1].Rate
		}
		return
	}
	s.points = append(s.points, p)
	r := s.rung(p.Rate)
	r.points = append(r.points, p)
	if len(p.Broken) == 0 {
		r.kept++
		r.keptFor += p.Seconds
		r.proven = r.proven || p.Purpose == Prove
		return
	}
	r.broke++
	r.brokeFor += p.Seconds
	r.tested = r.tested || s.last.For >= s.Time/shares[Narrow]
	if r.broken() && p.Late != "" && !p.refused(s.SLO) && s.ceiling == "" {
		s.ceiling = p.Late
	}
	if low != nil {
		s.settle = 1
	}
}

// settled reports whether answers take as long as at the lowest rate that kept the SLO.
func (s *Search) settled(p Point) bool {
	i := slices.IndexFunc(s.rungs, func(r *rung) bool { return r.kept > 0 && r.last().Latency != nil })
	if i < 0 {
		return true
	}
	calm := s.rungs[i].last().Latency
	return p.Latency != nil && p.Latency.P50 <= max(2*calm.P50, calm.P90)
}

// rung finds or makes the rung of a rate.
func (s *Search) rung(rate float64) *rung {
	i, found := slices.BinarySearchFunc(s.rungs, rate, func(r *rung, rate float64) int { return cmp.Compare(r.rate, rate) })
	if !found {
		s.rungs = slices.Insert(s.rungs, i, &rung{rate: rate})
	}
	return s.rungs[i]
}
