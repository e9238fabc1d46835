package demo

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// verdicts says in a line for each phase what was seen, with its figures,
// whatever they are.
func (r *Result) verdicts() []string {
	var out []string
	for i, p := range r.Phases {
		each := make([]string, len(r.Lanes))
		for k, lane := range r.Lanes {
			t := r.Of(p.Name, lane)
			each[k] = fmt.Sprintf("%s %s", lane, percent(t.Share()))
			if i > 0 && p.Load < 1 {
				each[k] += r.recovery(i, k)
			}
		}
		line := fmt.Sprintf("%s (%gx): answered in time, of what was possible: %s.", p.Name, p.Load, strings.Join(each, "; "))
		out = append(out, strings.ToUpper(line[:1])+line[1:])
		if p.Load > 1 {
			out = append(out, r.waits(p))
		}
	}
	return out
}

// recovered is the share of the offered load from which a lane counts as well
// again; a second of Poisson arrivals strays from its mean by a tenth.
const recovered = .75

// recovery tells when a lane was well again in a phase and stayed so; nothing
// if it was so at once.
func (r *Result) recovery(phase, lane int) string {
	start, well := -1.0, -1.0
	for _, row := range r.Rows {
		if row.Phase != phase {
			start = row.At
			continue
		}
		switch ok := row.Lanes[lane].Good >= recovered*row.Offered; {
		case !ok:
			well = -1
		case well < 0:
			well = row.At
		}
	}
	switch after := well - start; {
	case well < 0:
		return ", still down"
	case after > 1.5:
		return fmt.Sprintf(", well again after %.0f s", after)
	}
	return ""
}

// waits tells how long the admitted waited in an overloaded phase, and whether
// critical requests came first.
func (r *Result) waits(p Phase) string {
	each := make([]string, len(r.Lanes))
	for k, lane := range r.Lanes {
		t := r.Of(p.Name, lane)
		each[k] = fmt.Sprintf("%s %s and %s", lane, Millis(t.P99), percent(t.Critical))
	}
	return fmt.Sprintf("P99 of whatever was not refused, and critical requests answered: %s.", strings.Join(each, "; "))
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// Millis writes a latency in at most three digits.
func Millis(v float64) string {
	d := time.Duration(v * float64(time.Millisecond))
	switch {
	case v == 0:
		return "–"
	case d >= 995*time.Millisecond:
		return fmt.Sprintf("%.1f s", math.Round(10*d.Seconds())/10)
	case d >= 10*time.Millisecond:
		return fmt.Sprintf("%.0f ms", v)
	}
	return fmt.Sprintf("%.1f ms", v)
}
