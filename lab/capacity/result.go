package capacity

import (
	"fmt"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/internal/numbers"
)

// Result is what a search found.
type Result struct {
	Schema string `json:"schema"`
	Target string `json:"target"`
	SLO    string `json:"slo"`
	Ending Ending `json:"ending"`

	Knee   float64  `json:"knee,omitempty"`      // the highest rate that kept the SLO; absent: none did
	Broken float64  `json:"broken_at,omitempty"` // the lowest rate above it that broke it; absent: none did
	Proven bool     `json:"proven"`              // the knee kept the SLO twice, the second time for longer
	Points []Point  `json:"points"`              // in the order of measuring
	Doubts []string `json:"doubts"`              // assumptions that do not hold, in sentences
	Advice []Advice `json:"advice"`

	Seconds float64 `json:"seconds"`
	Why     string  `json:"why"` // how it ended, in a sentence

	slo   SLO
	rungs []*rung
}

// Found reports whether a rate kept the SLO.
func (r *Result) Found() bool { return r.Knee > 0 }

// Result is what the search found so far. traffic is the load to plan replicas for; 0: none.
func (s *Search) Result(traffic float64) *Result {
	low, high := s.bracket()
	r := &Result{
		Schema: "spillway/capacity/v1", SLO: s.SLO.String(), Ending: s.ended, Points: s.points,
		Doubts: []string{}, Advice: []Advice{}, Seconds: s.spent.Seconds(), slo: s.SLO, rungs: s.rungs,
	}
	if low != nil {
		r.Knee, r.Proven = low.rate, low.sure()
	}
	if high != nil {
		r.Broken = high.rate
	}
	r.Why = r.why(s)
	r.Doubts = append(r.Doubts, s.doubts(low, high)...)
	if low != nil {
		r.Advice = append(r.Advice, advise(s.SLO, low, calm(s.rungs, low), traffic)...)
	}
	return r
}

// Interrupt ends the search where it is.
func (s *Search) Interrupt() { s.ended = Interrupted }

func perSecond(rate float64) string { return numbers.Format(rate) + "/s" }

func (r *Result) why(s *Search) string {
	switch {
	case !r.Found() && s.ceiling != "":
		return "The SLO was not kept at any rate, and the generator itself was late: " + s.ceiling
	case s.ended == NeverKept || !r.Found() && len(r.Points) > 0:
		p := &r.Points[len(r.Points)-1]
		return fmt.Sprintf("The SLO was not kept even at %s: %s.", perSecond(p.Rate), strings.Join(p.Broken, "; "))
	case s.ended == Generator:
		return fmt.Sprintf("The generator is the bound at %s, so the knee is above %s: %s", perSecond(r.Broken), perSecond(r.Knee), s.ceiling)
	case s.ended == MaxRate:
		return fmt.Sprintf("The SLO was kept up to the largest rate allowed, %s: the knee is there or above.", perSecond(s.Max))
	case s.ended == Interrupted:
		return "Interrupted: the curve is partial."
	case s.ended == NoTime && r.Broken > 0 && r.Broken <= precision*r.Knee:
		return "The time was over before the knee was confirmed once more: give it more time."
	case s.ended == NoTime:
		return fmt.Sprintf("The time was over before the interval was narrower than %.0f %% and the knee confirmed: give it more time.", 100*(precision-1))
	}
	return fmt.Sprintf("Kept at %s, once more for longer; broken at %s, twice.", perSecond(r.Knee), perSecond(r.Broken))
}

// doubts names the assumptions behind a knee that do not hold here.
func (s *Search) doubts(low, high *rung) (out []string) {
	doubt := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if high == nil {
		return nil
	}
	quiet := calm(s.rungs, low)
	bound, ok := s.SLO.strictest()
	if !ok {
		bound = time.Second
	}
	slack := bound.Seconds() * 1000 / 10
	still := func(p *Point) bool { // its latency is that of little load
		return p.Latency != nil && quiet.Latency != nil && p.Latency.P50 <= 1.3*quiet.Latency.P50+slack/2 && p.Latency.P90 <= 1.5*quiet.Latency.P90+slack
	}
	past := func(yes func(p *Point) bool) (all []*Point) { // at the rates that broke the SLO
		for _, r := range s.rungs {
			for i := range r.points {
				if p := &r.points[i]; r.broken() && len(p.Broken) > 0 && yes(p) {
					all = append(all, p)
				}
			}
		}
		return all
	}
	broke := past(func(*Point) bool { return true })
	refused := past(func(p *Point) bool { return still(p) && beyondChance(p.Rejected, p.answers(), s.SLO.Rejected) })
	switch {
	case 3*len(refused) < 2*len(broke):
	case low == nil:
		doubt("It answers 429 or 503 at every rate, and the rest as fast as ever: that looks like a rate limit that allows no two requests close to each other, not a capacity.")
	default:
		most := refused[0]
		for _, p := range refused {
			if p.Goodput > most.Goodput {
				most = p
			}
		}
		atOnce := most.Goodput * most.Latency.Mean / 1000
		or := ""
		if atOnce > 1.5 {
			or = fmt.Sprintf(", or one of %s requests at once (%s × %s)", numbers.Format(atOnce), perSecond(most.Goodput), millis(most.Latency.Mean))
		}
		doubt("It answers 429 or 503 above %s whatever its latency, which is the same as at %s: that looks like a rate limit at %s%s, not a capacity.",
			perSecond(most.Goodput), perSecond(quiet.Rate), perSecond(most.Goodput), or)
	}
	flat := past(func(p *Point) bool {
		return p.Latency != nil && quiet.Latency != nil && p.Latency.Mean <= 1.1*quiet.Latency.Mean &&
			!beyondChance(p.Failed, p.answers(), s.SLO.Errors) && !beyondChance(p.Rejected, p.answers(), s.SLO.Rejected)
	})
	if len(flat) == len(broke) && low != nil {
		doubt("The mean latency does not rise with the load: what breaks the SLO is there without load, too, and seen as soon as there are enough requests.")
	}
	again := past(func(p *Point) bool {
		return p.Latency != nil && quiet.Latency != nil && p.Latency.P50 <= 3*quiet.Latency.P50 && p.Latency.P99 >= 1000 && p.Late == "" && low != nil && quiet.Latency.P99 < 500
	})
	if len(again) > 0 {
		p := again[0]
		doubt("Most answers at %s are about as fast as with little load (p50 %s) and some take a second or more (p99 %s): so long a system waits before it asks again for a connection for which the service's listen queue had no room. That looks like a limit of this queue, not of the work.",
			perSecond(p.Rate), millis(p.Latency.P50), millis(p.Latency.P99))
	}
	grow := past(func(p *Point) bool {
		rise := p.InFlight[3] - p.InFlight[1]
		return p.Rejected == 0 && rise > p.Rate*p.Seconds/2*.02 && p.InFlight[3] > 1.5*p.InFlight[1] && p.InFlight[3] > 1.2*p.InFlight[2]
	})
	if n := len(grow); n > 0 {
		p := grow[n-1]
		doubt("Latency rises with the length of the run: a queue without bound. At %s nothing was refused, and in %.1f s the requests in flight grew from %.0f to %.0f.",
			perSecond(p.Rate), p.Seconds, p.InFlight[1], p.InFlight[3])
	}
	worst := broke[0]
	for _, p := range broke {
		if p.Goodput < worst.Goodput {
			worst = p
		}
	}
	if low != nil && s.ceiling == "" && worst.Goodput < .8*low.last().Goodput {
		doubt("Past the knee it does less: %s at an offered %s, where it does %s at the knee. A burst above the knee costs more than the burst.",
			perSecond(worst.Goodput), perSecond(worst.Rate), perSecond(low.last().Goodput))
	}
	if s.slow > 0 {
		doubt("After %s its latency was not back within %v at a low rate, so what was measured next may be worse than it is.", perSecond(s.slow), settles*settleFor)
	}
	return out
}

// calm is a point at which little waits: the highest rate that kept the SLO up to 60 % of
// the knee, or the lowest one; without a knee the lowest rate that was tried.
func calm(rungs []*rung, knee *rung) *Point {
	if knee == nil {
		return rungs[0].last()
	}
	var found *Point
	for _, r := range rungs {
		if r.kept == 0 || r.broken() {
			continue
		}
		if found == nil || r.rate <= .6*knee.rate {
			found = r.last()
		}
	}
	return found
}
