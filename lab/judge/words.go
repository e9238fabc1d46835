package judge

import (
	"fmt"
	"math"
	"strings"

	"github.com/spillway-go/spillway/lab/internal/numbers"
)

// why is the answer in one sentence: what was measured, what kind of figure that is,
// and where it lies relative to the rule, which this many repeats satisfy.
func (c *court) why(ans Answer, satisfied int) string {
	rule, unit, basis := c.Rule.Words(c.Unit), inUnit(c.Unit), fmt.Sprintf("%d repeats", ans.Repeats)
	is := "which is "
	if ans.Verdict == Fails && c.Kind == Median {
		is = "which is not "
	}
	if !startsWithLetter(rule) {
		is += "inside "
	}
	clear := c.noise(", clear of the bounds by more than the %s by which %s")
	var relation string
	switch {
	case ans.AtEdge:
		relation = fmt.Sprintf("at the edge of the rule (%s)%s", rule, c.noise(": %[2]s by %[1]s"))
	case c.Kind != Median:
		relation = fmt.Sprintf("%s%s in %d of %s%s", is, rule, satisfied, basis, clear)
	case ans.Verdict == Inconclusive:
		relation = "too uncertain for the rule (" + rule + ")"
	default:
		relation = is + rule + clear
	}
	switch {
	case ans.Verdict != Inconclusive:
	case ans.MoreRuns > 0:
		relation += fmt.Sprintf("; %d more should settle it", ans.MoreRuns)
	default:
		relation += "; more repeats would not help, it needs " + c.needs(ans)
	}
	if c.Kind == Never {
		unit += " at worst"
	}
	if c.Kind == Median {
		basis = "median of " + basis
	}
	return c.sentence("was %s%s (%s, %s), %s", numbers.Format(ans.Measured), unit, span(ans.Low, ans.High), basis, relation)
}

// needs is what would settle a question that more repeats do not.
func (c *court) needs(ans Answer) string {
	switch {
	case c.Kind == Every && !ans.AtEdge:
		return "the reason why they differ"
	case c.Kind == Median && !ans.AtEdge:
		return "runs that differ less: longer ones, or a quieter machine"
	case c.byFloor() && c.floor > 0:
		return "longer runs or a quieter machine, where the same contestant differs less from itself"
	}
	return "a figure that is farther from the edge than sessions differ"
}

// sentence is about the subject. It names the disturbed repeats.
func (c *court) sentence(format string, args ...any) string {
	disturbed := ""
	for i, repeat := range c.Disturbed {
		before := ", "
		switch i {
		case 0:
			before = "; other processes disturbed repeat "
		case len(c.Disturbed) - 1:
			before = " and "
		}
		disturbed += before + fmt.Sprint(repeat+1)
	}
	return c.Subject + " " + strings.TrimSuffix(fmt.Sprintf(format, args...), ".") + disturbed + "."
}

// byFloor reports whether the A/A floor is the larger margin.
func (c *court) byFloor() bool { return c.floor >= c.spread }

// noise fills in the margin and where it is from; "" without a margin.
func (c *court) noise(format string) string {
	margin := c.margin()
	if margin <= 0 {
		return ""
	}
	amount, who := numbers.Format(margin)+inUnit(c.Unit), "sessions differ"
	if c.Ratio {
		amount = numbers.Format(100*math.Expm1(margin)) + " %"
	}
	if c.byFloor() {
		who = "the same contestant differs from itself"
	}
	return fmt.Sprintf(format, amount, who)
}

func span(low, high float64) string {
	switch {
	case low == high:
		return "always the same"
	case low < 0:
		return numbers.Format(low) + " to " + numbers.Format(high)
	}
	return numbers.Format(low) + "–" + numbers.Format(high)
}
