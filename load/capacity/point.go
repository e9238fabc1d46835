package capacity

import (
	"fmt"
	"math"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/load/numbers"
)

// Probe is what the search asks for: this rate, for this long.
type Probe struct {
	Rate    float64
	For     time.Duration
	Purpose Purpose
}

// Purpose is why a probe is made.
type Purpose string

// The purposes, in the order in which a search has them.
const (
	Grow    Purpose = "grow"    // double the rate until the SLO breaks
	Confirm Purpose = "confirm" // is a broken SLO so a second time?
	Settle  Purpose = "settle"  // wait, at a low rate, until latency is back
	Halve   Purpose = "halve"   // halfway between a rate that kept the SLO and one that broke it
	Narrow  Purpose = "narrow"  // where the goodput says that the knee is, or halfway, and for longer
	Prove   Purpose = "prove"   // the knee once more, for longer
)

// quarters of a probe's time. The first is the start: it is in no rate and in no growth.
const quarters = 4

// Point is what was measured at one rate.
type Point struct {
	Purpose  Purpose           `json:"purpose"`
	Rate     float64           `json:"rate"`    // asked for, requests a second
	Seconds  float64           `json:"seconds"` // as long were requests started
	Goodput  float64           `json:"goodput"` // good answers a second that came while requests were started, without the first quarter
	OK       uint64            `json:"ok"`
	Rejected uint64            `json:"rejected"`
	Failed   uint64            `json:"failed"` // errors and timeouts
	Over     []uint64          `json:"over"`   // good answers above each latency of the SLO
	Latency  *Latency          `json:"latency_ms,omitempty"`
	InFlight [quarters]float64 `json:"in_flight"`           // mean in each quarter of the time
	Late     string            `json:"generator,omitempty"` // why the generator was the bound, if it was
	Broken   []string          `json:"broken,omitempty"`    // what of the SLO
}

// Latency of the good answers, in milliseconds. Without a good answer there is none.
type Latency struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99.9"`
}

// latencies fills in what the good answers say.
func (p *Point) latencies(h *histogram.Histogram, slo SLO) {
	p.OK = h.Count()
	for _, b := range slo.Latency {
		p.Over = append(p.Over, h.Count()-h.CountAtMost(int64(b.At)))
	}
	if p.OK == 0 {
		return
	}
	ms := func(q float64) float64 { return float64(h.Quantile(q)) / 1e6 }
	p.Latency = &Latency{h.Mean() / 1e6, ms(.5), ms(.9), ms(.99), ms(.999)}
}

// at is the latency at a quantile of the SLO, in milliseconds.
func (l *Latency) at(quantile float64) float64 {
	switch quantile {
	case .5:
		return l.P50
	case .9:
		return l.P90
	case .99:
		return l.P99
	}
	return l.P999
}

// answers is how many requests have an outcome.
func (p *Point) answers() uint64 { return p.OK + p.Rejected + p.Failed }

// judge fills in what of the SLO is broken, beyond what chance explains.
func (p *Point) judge(slo SLO) {
	p.Broken = nil
	breaks := func(format string, args ...any) { p.Broken = append(p.Broken, fmt.Sprintf(format, args...)) }
	if beyondChance(p.Failed, p.answers(), slo.Errors) {
		breaks("errors %s %%, allowed %s %%", numbers.Format(percent(p.Failed, p.answers())), numbers.Bound(100*slo.Errors))
	}
	if beyondChance(p.Rejected, p.answers(), slo.Rejected) {
		breaks("rejected %s %%, allowed %s %%", numbers.Format(percent(p.Rejected, p.answers())), numbers.Bound(100*slo.Rejected))
	}
	for i, b := range slo.Latency {
		if p.OK > 0 && beyondChance(p.Over[i], p.OK, 1-b.Quantile) {
			breaks("%s %s, allowed %v", b.Name, millis(p.Latency.at(b.Quantile)), b.At)
		}
	}
	if p.OK == 0 && len(p.Broken) == 0 {
		breaks("no good answer")
	}
	if after, grows := p.brokenAfter(slo); grows && len(p.Broken) == 0 {
		breaks("requests in flight grow, from %s to %s: broken after %s s", numbers.Format(p.InFlight[1]), numbers.Format(p.InFlight[3]), numbers.Format(after))
	}
}

// refused reports whether refusals or errors break the SLO, which lateness cannot explain.
func (p *Point) refused(slo SLO) bool {
	return beyondChance(p.Failed, p.answers(), slo.Errors) || beyondChance(p.Rejected, p.answers(), slo.Rejected)
}

func percent(k, n uint64) float64 { return 100 * float64(k) / float64(n) }

func millis(ms float64) string {
	if ms >= 999.5 {
		return numbers.Format(ms/1000) + " s"
	}
	return numbers.Format(ms) + " ms"
}

// sustained is how long a rate must keep the SLO.
const sustained = 60 // seconds

// brokenAfter reports whether the queue grows so fast that the SLO will break within a
// minute, and when. A queue of answers that come and go at random wanders by the root of
// their number; what is more than twice that is growth.
func (p *Point) brokenAfter(slo SLO) (seconds float64, grows bool) {
	span := p.Seconds / 2 // between the middles of the second and the last quarter
	rise := p.InFlight[3] - p.InFlight[1]
	if rise <= 2*math.Sqrt(p.Rate*span) || p.Goodput <= 0 {
		return 0, false
	}
	bound, ok := slo.strictest()
	if !ok {
		return p.Seconds, true
	}
	// By Little's law a request waits as long as those in front of it take.
	left := bound.Seconds()*p.Goodput - p.InFlight[3]
	after := p.Seconds + max(left, 0)/(rise/span)
	return after, after <= sustained
}
