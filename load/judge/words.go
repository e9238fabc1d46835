package judge

import (
	"fmt"
	"math"
	"strings"

	"github.com/spillway-go/spillway/load/numbers"
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
	case ans.Void:
		relation = fmt.Sprintf("which is void: in this session the same contestant differs from itself by %s", c.amounts(c.ownLow, c.ownHigh))
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
	switch {
	case c.Kind == Never && ans.Verdict == Holds:
		relation += fmt.Sprintf("; with none of %d against it, at most %.0f %% of all repeats are", ans.Repeats, 100*atMost(ans.Repeats))
	case c.Kind == Median && c.inflation > 1.2:
		basis += fmt.Sprintf(" that follow each other, lag-1 correlation %.2f", c.follow)
	}
	if c.Kind == Never {
		unit += " at worst"
	}
	if c.Kind == Median {
		basis = "median of " + basis
	}
	return c.sentence("was %s%s (%s, %s), %s", numbers.Format(ans.Measured), unit, span(ans.Low, ans.High), basis, relation)
}

// atMost is the largest share that shows nothing in n repeats with a probability of 5 %.
func atMost(n int) float64 { return 1 - math.Pow(0.05, 1/float64(n)) }

// needs is what would settle a question that more repeats do not.
func (c *court) needs(ans Answer) string {
	switch {
	case ans.Void:
		return "a session whose order, or an instrument that, favors neither of two equal contestants"
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
	amount, who := c.amount(margin), "sessions differ"
	if c.byFloor() {
		who = "the same contestant differs from itself"
	}
	return fmt.Sprintf(format, amount, who)
}

// amount is a difference on the scale of the question, in words.
func (c *court) amount(x float64) string {
	if c.Ratio {
		return numbers.Format(100*math.Expm1(x)) + " %"
	}
	return numbers.Format(x) + inUnit(c.Unit)
}

func (c *court) amounts(low, high float64) string { return c.amount(low) + " to " + c.amount(high) }

func span(low, high float64) string {
	switch {
	case low == high:
		return "always the same"
	case low < 0:
		return numbers.Format(low) + " to " + numbers.Format(high)
	}
	return numbers.Format(low) + "–" + numbers.Format(high)
}
