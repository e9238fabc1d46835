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
	rule, unit, basis := c.Rule.Words(c.Unit), inUnit(c.Unit), fmt.Sprintf("in %d repeats", ans.Repeats)
	if !startsWithLetter(rule) {
		rule = "inside " + rule
	}
	relation := "which is " + rule
	switch {
	case ans.AtEdge:
		relation = fmt.Sprintf("at the edge of the rule (%s)%s", c.Rule.Words(c.Unit), c.noise(": %[2]s by %[1]s"))
	case c.Kind == Every:
		relation += " in " + share(satisfied, ans.Repeats) + c.noise(", clear of the %s by which %s")
	case ans.Verdict == Inconclusive:
		relation = "too uncertain to tell whether it is " + rule
	default:
		if ans.Verdict == Fails {
			relation = "which is not " + rule
		}
		relation += c.noise(", by more than the %s by which %s")
	}
	switch {
	case c.Kind == Never:
		unit += " at worst"
		relation += " (satisfied in " + share(satisfied, ans.Repeats) + ")"
	case c.Kind == Every:
	case ans.Verdict == Inconclusive && ans.MoreRuns == 0:
		relation += "; more repeats would not help"
	case ans.Verdict == Inconclusive:
		relation += fmt.Sprintf("; %d more should settle it", ans.MoreRuns)
	}
	if c.Kind == Median {
		basis = fmt.Sprintf("median of %d repeats", ans.Repeats)
	}
	return c.sentence("was %s%s (%s, %s), %s", numbers.Format(ans.Measured), unit, span(ans.Low, ans.High), basis, relation)
}

// sentence is about the subject. It names the disturbed repeats.
func (c *court) sentence(format string, args ...any) string {
	disturbed := ""
	for i, repeat := range c.Disturbed {
		disturbed += map[bool]string{true: "; other processes disturbed repeat ", false: " and "}[i == 0] + fmt.Sprint(repeat+1)
	}
	return c.Subject + " " + strings.TrimSuffix(fmt.Sprintf(format, args...), ".") + disturbed + "."
}

// noise fills in the margin and where it is from; "" without a margin.
func (c *court) noise(format string) string {
	if c.margin <= 0 {
		return ""
	}
	amount, who := numbers.Format(c.margin)+inUnit(c.Unit), "sessions differ"
	if c.Ratio {
		amount = numbers.Format(100*math.Expm1(c.margin)) + " %"
	}
	if c.byFloor {
		who = "the same contestant differs from itself"
	}
	return fmt.Sprintf(format, amount, who)
}

// share is "every repeat", "no repeat" or "3 of 5 repeats".
func share(n, of int) string {
	switch n {
	case of:
		return "every repeat"
	case 0:
		return "no repeat"
	}
	return fmt.Sprintf("%d of %d repeats", n, of)
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
