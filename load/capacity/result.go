package capacity

import (
	"fmt"
	"strings"

	"github.com/spillway-go/spillway/load/numbers"
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
	Why     string  `json:"why"`            // how it ended, in a sentence
	Void    string  `json:"void,omitempty"` // what the generator's machine ran out of, in the same sentence; the search ended there

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
	r.Why, r.Void = r.why(s), s.void
	r.Doubts = append(r.Doubts, s.doubts(low, high)...)
	if low != nil {
		r.Advice = append(r.Advice, advise(s.SLO, low, calm(s.rungs, low), traffic)...)
	}
	return r
}

// Interrupt ends the search where it is.
func (s *Search) Interrupt() { s.ended = Interrupted }

// Exhaust ends the search because the generator's machine ran out of something. The last probe says
// nothing about the service.
func (s *Search) Exhaust(why string) { s.ended, s.void = Generator, why }

func perSecond(rate float64) string { return numbers.Format(rate) + "/s" }

func (r *Result) why(s *Search) string {
	switch {
	case s.void != "":
		return fmt.Sprintf("The search ended at %s: %s", perSecond(s.last.Rate), s.void)
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
		return "The time was over before both ends were tried once more, for longer: give it more time."
	case s.ended == NoTime && r.Proven:
		return fmt.Sprintf("The knee was confirmed, and the time over before the interval was narrower than %.0f %%: give it more time.", 100*(precision-1))
	case s.ended == NoTime:
		return fmt.Sprintf("The time was over before the interval was narrower than %.0f %% and the knee confirmed: give it more time.", 100*(precision-1))
	}
	return fmt.Sprintf("Kept at %s, once more for longer; broken at %s, twice.", perSecond(r.Knee), perSecond(r.Broken))
}
