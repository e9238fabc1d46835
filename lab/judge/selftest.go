package judge

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
)

// Func is a judge; [Judge] is the one the lab uses.
type Func func(Question, Input) Answer

// FullTrials are enough for the limits; of fewer, four standard errors are allowed for.
const FullTrials = 20_000

// Row is one test: how often something happened, and how often it may.
type Row struct {
	Test    string  `json:"test"`
	Repeats int     `json:"repeats"`
	Trials  int     `json:"trials"`
	Share   float64 `json:"share"`
	Least   float64 `json:"least"`
	Most    float64 `json:"most"`
	Passed  bool    `json:"passed"`

	part int // one in so many of the trials
	try  func(*rand.Rand) (hit, counts bool)
}

// Report is a table of tests.
type Report struct {
	Seed uint64 `json:"seed"`
	Rows []*Row `json:"rows"`
}

// noise draws around a median of 0.
type noise struct {
	name string
	draw func(*rand.Rand) float64
}

var noises = []noise{
	{"normal", (*rand.Rand).NormFloat64},
	{"exponential", func(rng *rand.Rand) float64 { return rng.ExpFloat64() - math.Ln2 }},
	{"lognormal", func(rng *rand.Rand) float64 { return math.Expm1(rng.NormFloat64()) }},
	{"difference of a pair's", func(rng *rand.Rand) float64 {
		drift := 5 * rng.NormFloat64()
		return (drift + rng.ExpFloat64()) - (drift + rng.ExpFloat64())
	}},
}

// repeats are n values around a median.
func (n noise) repeats(rng *rand.Rand, count int, median float64) []float64 {
	xs := make([]float64, count)
	for i := range xs {
		xs[i] = median + n.draw(rng)
	}
	return xs
}

// Selftest has a judge decide synthetic experiments of which the truth is known. The
// report is a function of its arguments.
func Selftest(trials int, seed uint64, judge Func) Report {
	report := Report{Seed: seed}
	add := func(test string, repeats, part int, least, most float64, try func(*rand.Rand) (hit, counts bool)) {
		report.Rows = append(report.Rows, &Row{Test: test, Repeats: repeats, Least: least, Most: most, part: part, try: try})
	}
	verdict := func(rule Rule, spread float64, values, floor []float64) Verdict {
		return judge(Question{Rule: rule, Spread: spread}, Input{Values: values, Floor: floor, hasty: true}).Verdict
	}
	for _, n := range noises {
		for _, repeats := range []int{5, 7, 10, 20} {
			most := map[bool]float64{true: .97, false: .99}[repeats == 5]
			add("the interval contains the median of "+n.name+" noise", repeats, 1, .93, most, func(rng *rand.Rand) (bool, bool) {
				ans := judge(Question{Rule: AtLeast(math.Inf(-1))}, Input{Values: n.repeats(rng, repeats, 0)})
				return ans.Low <= 0 && 0 <= ans.High, true
			})
		}
	}
	for _, n := range noises[:3] {
		for _, repeats := range []int{5, 10} {
			add("and with one repeat in five disturbed, "+n.name, repeats, 1, .90, 1, func(rng *rand.Rand) (bool, bool) {
				values := n.repeats(rng, repeats, 0)
				for i := range repeats / 5 {
					values[i] += 5
				}
				ans := judge(Question{Rule: AtLeast(math.Inf(-1))}, Input{Values: values})
				return ans.Low <= 0 && 0 <= ans.High, true
			})
		}
	}
	for _, n := range noises {
		add("wrong at a bound in up to three looks, "+n.name, 20, 1, 0, 1./16, func(rng *rand.Rand) (bool, bool) {
			values, rule, wrong := n.repeats(rng, 20, 0), AtLeast(0), Fails
			if rng.IntN(2) == 0 {
				rule, wrong = Above(0), Holds
			}
			for look, repeats := range []int{5, 10, 20} {
				if v := judge(Question{Rule: rule}, Input{Values: values[:repeats], Looks: look, hasty: true}).Verdict; v != Inconclusive {
					return v == wrong, true
				}
			}
			return false, true
		})
	}
	for _, n := range noises {
		add("an effect called beyond noise where none is, "+n.name, 5, 1, 0, 1./16, func(rng *rand.Rand) (bool, bool) {
			return verdict(Above(0), 0, n.repeats(rng, 5, 0), n.repeats(rng, 5, 0)) != Inconclusive, true
		})
	}
	add("wrong at a bound that sessions cross by the spread", 5, 1, 0, 1./16, func(rng *rand.Rand) (bool, bool) {
		return verdict(AtLeast(0), 2, noises[0].repeats(rng, 5, 4*rng.Float64()-2), nil) == Fails, true
	})
	normal := noises[0]
	for _, effect := range []float64{10, -10} { // an effect of 20 % at a noise of 2 %
		want := map[bool]Verdict{true: Holds, false: Fails}[effect > 0]
		add(fmt.Sprintf("an effect of %+.0f times the noise is found", effect), 5, 1, .90, 1, func(rng *rand.Rand) (bool, bool) {
			return verdict(Above(0), 0, normal.repeats(rng, 5, effect), normal.repeats(rng, 5, 0)) == want, true
		})
	}
	add("no effect is found to be within 5 times the noise", 5, 1, .90, 1, func(rng *rand.Rand) (bool, bool) {
		return verdict(Between(-5, 5), 0, normal.repeats(rng, 5, 0), normal.repeats(rng, 5, 0)) == Holds, true
	})
	for _, n := range noises {
		add("settled by as many more runs as advised, "+n.name, 5, 100, .90, 1, func(rng *rand.Rand) (bool, bool) {
			q, truth := Question{Rule: AtLeast(0)}, 6*rng.Float64()-3
			in := Input{Values: n.repeats(rng, 5, truth), Seed: rng.Uint64()}
			ans := judge(q, in)
			if ans.Verdict != Inconclusive || ans.MoreRuns == 0 {
				return false, false
			}
			in = Input{Values: append(in.Values, n.repeats(rng, ans.MoreRuns, truth)...), Looks: 1, hasty: true}
			return judge(q, in).Verdict != Inconclusive, true
		})
	}
	var wg sync.WaitGroup
	for i, row := range report.Rows {
		wg.Go(func() { row.run(trials, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	wg.Wait()
	return report
}

// run makes the trials. Those that do not count are repeated, up to a hundred times.
func (r *Row) run(trials int, rng *rand.Rand) {
	hits, want := 0, (trials+r.part-1)/r.part
	for tries := 0; r.Trials < want && tries < 100*want; tries++ {
		hit, counts := r.try(rng)
		if counts {
			r.Trials++
		}
		if hit {
			hits++
		}
	}
	r.Share = float64(hits) / float64(max(1, r.Trials))
	allowed := func(limit float64) float64 {
		if trials >= FullTrials {
			return 0
		}
		return 4 * math.Sqrt(limit*(1-limit)/float64(max(1, r.Trials)))
	}
	r.Passed = r.Trials > 0 && r.Share >= r.Least-allowed(r.Least) && r.Share <= r.Most+allowed(r.Most)
}

// Err names the tests that failed.
func (r Report) Err() error {
	var errs []error
	for _, row := range r.Rows {
		if !row.Passed {
			errs = append(errs, fmt.Errorf("%s, %d repeats: %.2f %% of %d trials, %s is right",
				row.Test, row.Repeats, 100*row.Share, row.Trials, row.limits()))
		}
	}
	return errors.Join(errs...)
}

func (r *Row) limits() string {
	switch {
	case r.Most == 1:
		return fmt.Sprintf("≥ %.0f %%", 100*r.Least)
	case r.Least == 0:
		return fmt.Sprintf("≤ %.2f %%", 100*r.Most)
	}
	return fmt.Sprintf("%.0f–%.0f %%", 100*r.Least, 100*r.Most)
}

// String is the table.
func (r Report) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%-72s  %7s  %7s  %8s  %9s\n", "Test of the judge", "repeats", "trials", "share", "right")
	for _, row := range r.Rows {
		passed := map[bool]string{true: "pass", false: "FAIL"}[row.Passed]
		fmt.Fprintf(&out, "%-72s  %7d  %7d  %6.2f %%  %9s  %s\n", row.Test, row.Repeats, row.Trials, 100*row.Share, row.limits(), passed)
	}
	return out.String()
}
