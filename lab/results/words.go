package results

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/load/judge"
	"github.com/spillway-go/spillway/load/numbers"
)

// Deciding is the answer that stands for the claim where there is room for one: the first
// that made its verdict, or the first at all.
func (c Claim) Deciding() (out Answer, ok bool) {
	for _, a := range c.Answers {
		if a.Beside {
			continue
		}
		if a.Verdict == c.Verdict {
			return a, true
		}
		if !ok {
			out, ok = a, true
		}
	}
	return out, ok
}

// Part is the claim as far as one of its parts goes: its answers and their verdict. The
// empty part is the claim.
func (c Claim) Part(id string) Claim {
	if id == "" {
		return c
	}
	part, verdicts := c, []Verdict(nil)
	part.Answers = nil
	for _, a := range c.Answers {
		if a.Part == id {
			part.Answers = append(part.Answers, a)
			if !a.Beside {
				verdicts = append(verdicts, a.Verdict)
			}
		}
	}
	part.Verdict = judge.All(verdicts...)
	return part
}

// Figure is the measured value with its interval: "4.46x (4.38–4.54)". It is empty if there
// is none.
func (a Answer) Figure() string {
	if a.Repeats == 0 || math.IsNaN(a.Measured) {
		return ""
	}
	value, between := numbers.Format(a.Measured)+inUnit(a.Unit), "–"
	low, high := numbers.Format(a.Low), numbers.Format(a.High)
	if low == high || math.IsNaN(a.Low) || math.IsNaN(a.High) {
		return value
	}
	if a.Low < 0 {
		between = " to "
	}
	return fmt.Sprintf("%s (%s%s%s)", value, low, between, high)
}

// Said is the published value of the figure, or the ends of its range; empty if nobody
// published one.
func (a Answer) Said() string {
	if len(a.Published) == 0 {
		return ""
	}
	return strings.TrimPrefix(judge.Between(slices.Min(a.Published), slices.Max(a.Published)).Words(a.Unit), "exactly ")
}

func inUnit(unit string) string {
	if unit == "x" || unit == "" {
		return unit
	}
	return " " + unit
}
