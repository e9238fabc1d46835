package loadgen

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spillway-go/spillway/histogram"
)

// Merge adds up the results of the shares of one load ([Share]). Histograms are merged bucket for
// bucket and time lines step by step, so the sum equals the result of one process for the same
// requests. The sum is GeneratorBound if any part is, or if all parts together look so. The sum is
// Partial if any part is. An error means that the results are not of the same load. The parts stay
// unchanged.
func Merge(parts ...*Result) (*Result, error) {
	if len(parts) == 0 {
		return nil, errors.New("loadgen: no results to merge")
	}
	sum := &Result{}
	for _, c := range parts[0].Classes {
		sum.Classes = append(sum.Classes, ClassResult{Name: c.Name})
	}
	for _, p := range parts {
		if err := sum.add(p); err != nil {
			return nil, err
		}
	}
	sum.Causes = sumCauses(sum.Causes)
	sum.judge()
	for i, p := range parts {
		if !sum.GeneratorBound && p.GeneratorBound {
			sum.GeneratorBound = true
			sum.Why = fmt.Sprintf("Part %d of %d: %s", i+1, len(parts), p.Why)
		}
	}
	return sum, nil
}

func (r *Result) add(p *Result) error {
	same := func(a, b ClassResult) bool { return a.Name == b.Name }
	if !slices.EqualFunc(r.Classes, p.Classes, same) {
		return errors.New("loadgen: results with different classes cannot be merged")
	}
	r.Offered += p.Offered
	r.Aborted += p.Aborted
	r.Waited += p.Waited
	r.Elapsed = max(r.Elapsed, p.Elapsed)
	r.Partial = r.Partial || p.Partial
	r.Lag.Merge(&p.Lag)
	addOutcomes(&r.Outcomes, &p.Outcomes)
	r.Causes = append(r.Causes, p.Causes...)
	for i := range p.Phases {
		r.phase(p.Phases[i].Name).Merge(&p.Phases[i].Took)
	}
	for i := range r.Classes {
		addOutcomes(&r.Classes[i].Outcomes, &p.Classes[i].Outcomes)
	}
	for i, step := range p.Series {
		if i == len(r.Series) {
			r.Series = append(r.Series, Point{At: step.At})
		}
		sum := &r.Series[i]
		if sum.At != step.At {
			return fmt.Errorf("loadgen: results with steps at %v and %v cannot be merged", sum.At, step.At)
		}
		sum.Sent += step.Sent
		for o, n := range step.Outcomes {
			sum.Outcomes[o] += n
		}
	}
	return nil
}

// phase returns the histogram of a phase, and adds the phase if it is missing.
func (r *Result) phase(name string) *histogram.Histogram {
	i := slices.IndexFunc(r.Phases, func(p Phase) bool { return p.Name == name })
	if i < 0 {
		i, r.Phases = len(r.Phases), append(r.Phases, Phase{Name: name})
	}
	return &r.Phases[i].Took
}

func addOutcomes(sum, part *[outcomes]OutcomeResult) {
	for o := range sum {
		sum[o].Count += part[o].Count
		sum[o].Latency.Merge(&part[o].Latency)
	}
}

// interval returns the length of the steps of the series; 0 if there is at most one step.
func (r *Result) interval() time.Duration {
	if len(r.Series) < 2 {
		return 0
	}
	return r.Series[1].At
}
