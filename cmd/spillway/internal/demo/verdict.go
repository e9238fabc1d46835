package demo

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// verdicts returns a line for each lane with its figures: the share of the possible
// requests that it answered in time, phase by phase, and for the storm also the
// latency of requests that were not refused.
func (r *Result) verdicts() (out []string) {
	for k, lane := range r.Lanes {
		var phases []string
		for i := k; i < len(r.Summary); i += len(r.Lanes) {
			t, phase := r.Summary[i], i/len(r.Lanes)
			words := fmt.Sprintf("%s %s", t.Phase, percent(t.Share()))
			switch {
			case r.Phases[phase].Load > 1:
				words += fmt.Sprintf(" (p99 %s, critical requests %s)", Millis(t.P99), percent(t.Critical))
			case phase > 0:
				words += r.recovery(phase, k, t.Share())
			}
			phases = append(phases, words)
		}
		if len(phases) > 0 {
			out = append(out, lane+": "+strings.Join(phases, "; "))
		}
	}
	return out
}

// recovered is the share of the offered load from which a lane counts as recovered; a
// second of Poisson arrivals deviates from its mean by a tenth.
const recovered = .75

// recovery says when a lane had recovered for good in a phase with that share; empty if
// it had at once.
func (r *Result) recovery(phase, lane int, share float64) string {
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
	case well < 0 && share < .5:
		return ", still down"
	case well < 0:
		return ", not well yet"
	case after > 1.5:
		return fmt.Sprintf(", well again after %.0f s", after)
	}
	return ""
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
