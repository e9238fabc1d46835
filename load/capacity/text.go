package capacity

import (
	"fmt"
	"io"
	"strings"

	"github.com/spillway-go/spillway/load/numbers"
)

// barWidth is that of the highest offered rate, in columns.
const barWidth = 24

// Text writes the result for a terminal: goodput against offered load, the knee, and what
// follows from it.
func (r *Result) Text(w io.Writer) {
	fmt.Fprintf(w, "%s\nSLO %s\n\n", r.Target, r.SLO)
	r.curve(w)
	switch {
	case r.Found() && r.Broken > 0 && r.Ending != Generator:
		fmt.Fprintf(w, "\nThe knee is %s: between %s (kept) and %s (broken), %.1f %% apart.\n", perSecond(r.Knee), perSecond(r.Knee), perSecond(r.Broken), 100*(r.Broken/r.Knee-1))
	case r.Found():
		fmt.Fprintf(w, "\nThe knee is at least %s.\n", perSecond(r.Knee))
	case r.Void != "":
		fmt.Fprintln(w, "\nThe knee was not found.")
	default:
		fmt.Fprintln(w, "\nThere is no knee.")
	}
	fmt.Fprintf(w, "%s Found in %.0f s.\n", r.Why, r.Seconds)
	if len(r.Doubts) > 0 {
		fmt.Fprintln(w, "\nAssumptions that do not hold:")
	}
	for _, d := range r.Doubts {
		fmt.Fprintln(w, "  "+d)
	}
	if len(r.Advice) > 0 {
		fmt.Fprintln(w, "\nRecommended for one replica on this machine, under this load:")
	}
	for _, a := range r.Advice {
		fmt.Fprintf(w, "  %-11s %6s  %s\n", a.What, numbers.Format(a.Value), a.How)
	}
}

// curve draws one line a rate: what was answered well is solid, the rest of what was
// offered is dotted.
func (r *Result) curve(w io.Writer) {
	if len(r.rungs) == 0 {
		return
	}
	top := r.rungs[len(r.rungs)-1].rate
	fmt.Fprintf(w, "%10s %10s %9s %9s\n", "offered", "goodput", "mean", "p99")
	for _, rung := range r.rungs {
		p := rung.shown()
		mean, p99 := "–", "–"
		if l := p.Latency; l != nil {
			mean, p99 = millis(l.Mean), millis(l.P99)
		}
		offered, good := columns(p.Rate/top), columns(min(p.Goodput, p.Rate)/top)
		bar := strings.Repeat("█", good) + strings.Repeat("·", offered-good) + strings.Repeat(" ", barWidth-offered)
		fmt.Fprintf(w, "%10s %10s %9s %9s  %s  %s\n", perSecond(p.Rate), perSecond(p.Goodput), mean, p99, bar, rung.verdict())
	}
}

func columns(share float64) int { return min(max(int(share*barWidth+.5), 0), barWidth) }

// shown is the point that stands for the rate: the last one that says what is believed.
func (r *rung) shown() *Point {
	for i := len(r.points) - 1; i >= 0; i-- {
		if (len(r.points[i].Broken) > 0) == (r.broken() || r.kept == 0) {
			return &r.points[i]
		}
	}
	return r.last()
}

// verdict says whether the SLO was kept at this rate, and how often it was asked.
func (r *rung) verdict() string {
	verdict := "kept"
	if p := r.shown(); len(p.Broken) > 0 {
		verdict = "broken: " + strings.Join(p.Broken, "; ")
	}
	if r.kept > 0 && r.broke > 0 {
		verdict += fmt.Sprintf(" (kept %d of %d times)", r.kept, r.kept+r.broke)
	}
	return verdict
}
