package judge

import (
	"fmt"
	"math"
	"strings"

	"github.com/spillway-go/spillway/lab/internal/numbers"
)

// why is the answer in one sentence: what was measured, what kind of figure that is,
// and where it lies relative to the rule. Of the repeats, this many satisfy the rule.
func (c *court) why(ans Answer, satisfied int) string {
	basis, rule, unit := fmt.Sprintf("in %d repeats", ans.Repeats), c.q.Rule.phrase(c.q.Unit), inUnit(c.q.Unit)
	var relation string
	switch {
	case ans.AtEdge:
		relation = "at the edge of " + c.q.Rule.edge(c.q.Unit) + ": " + c.noise("%[2]s by %[1]s") + c.advice(ans)
	case c.q.Kind == Every:
		relation = "which is " + rule + " in " + share(satisfied, ans.Repeats) + c.noise(", clear of the %s by which %s")
	case ans.Verdict == Inconclusive:
		relation = "too uncertain to tell whether it is " + rule + c.advice(ans)
	case ans.Verdict == Holds:
		relation = "which is " + rule + c.noise(", by more than the %s by which %s")
	default:
		relation = "which is not " + rule + c.noise(", by more than the %s by which %s")
	}
	switch c.q.Kind {
	case Median:
		basis = fmt.Sprintf("median of %d repeats", ans.Repeats)
	case Never:
		unit += " at worst"
		if ans.Verdict == Fails {
			relation += " (in " + share(ans.Repeats-satisfied, ans.Repeats) + ")"
		}
	}
	return c.sentence("was %s%s (%s, %s), %s", numbers.Format(ans.Measured), unit, span(ans.Low, ans.High), basis, relation)
}

// sentence is about the subject and names the disturbed repeats.
func (c *court) sentence(format string, args ...any) string {
	disturbed := ""
	if len(c.in.Disturbed) > 0 {
		names := make([]string, len(c.in.Disturbed))
		for i, repeat := range c.in.Disturbed {
			names[i] = fmt.Sprint(repeat + 1)
		}
		disturbed = "; other processes disturbed repeat " + strings.Join(names, ", ")
	}
	return c.q.Subject + " " + strings.TrimSuffix(fmt.Sprintf(format, args...), ".") + disturbed + "."
}

func (c *court) missing() string {
	gone, reason := len(c.in.Values)-len(c.values), ""
	if c.in.Missing != "" {
		reason = ": " + c.in.Missing
	}
	if gone == 0 {
		return c.sentence("is missing%s", reason)
	}
	return c.sentence("is missing in %d of %d repeats%s", gone, len(c.in.Values), reason)
}

func (c *court) noFloor() string {
	return c.sentence("has no noise floor, because what it differs from itself is missing in a repeat")
}

func (c *court) tooFew(need int) string {
	return c.sentence("has %d of the %d repeats that a verdict needs; it needs %d more", len(c.values), need, need-len(c.values))
}

// noise fills in the margin and where it is from; "" without a margin.
func (c *court) noise(format string) string {
	if c.margin <= 0 {
		return ""
	}
	amount, who := numbers.Format(c.margin)+inUnit(c.q.Unit), "sessions differ"
	if c.q.Ratio {
		amount = numbers.Format(100*math.Expm1(c.margin)) + " %"
	}
	if c.byFloor {
		who = "the same contestant differs from itself"
	}
	return fmt.Sprintf(format, amount, who)
}

func (c *court) advice(ans Answer) string {
	switch {
	case c.q.Kind != Median:
		return ""
	case ans.MoreRuns == 0:
		return "; more runs would not help"
	case ans.MoreRuns == 1:
		return "; 1 more run should settle it"
	}
	return fmt.Sprintf("; %d more runs should settle it", ans.MoreRuns)
}

// phrase is the rule after "is".
func (r Rule) phrase(unit string) string {
	words := r.Words(unit)
	if c := words[0]; c >= '0' && c <= '9' || strings.HasPrefix(words, "−") {
		return "inside " + words
	}
	return words
}

// edge is the rule's bounds.
func (r Rule) edge(unit string) string {
	switch {
	case math.IsInf(r.Low, -1):
		return numbers.Bound(r.Top) + inUnit(unit)
	case math.IsInf(r.Top, 1), r.Low == r.Top:
		return numbers.Bound(r.Low) + inUnit(unit)
	}
	return Between(r.Low, r.Top).Words(unit)
}

// share is "every repeat", "no repeat" or "3 of 5 repeats".
func share(n, of int) string {
	switch n {
	case 0:
		return "no repeat"
	case of:
		return "every repeat"
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
