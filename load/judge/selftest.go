package judge

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
)

// Func is a judge; [Judge] is the one the lab uses.
type Func func(Question, Input) Answer

// fullTrials are enough for the limits; with fewer, some standard errors are allowed for.
const fullTrials = 20_000

// Row is one test: how often something happened, and how often it may.
type Row struct {
	Test    string  `json:"test"`
	Repeats int     `json:"repeats"`
	Trials  int     `json:"trials"`
	Share   float64 `json:"share"`
	Least   float64 `json:"least"`
	Most    float64 `json:"most"`
	Passed  bool    `json:"passed"`
}

// Report is a table of tests.
type Report struct {
	Seed uint64 `json:"seed"`
	Rows []*Row `json:"rows"`
}

type noise struct {
	name string
	draw func(*rand.Rand) float64
}

// noises draw around a median of 0. A pair shares a drift, which its difference cancels.
var noises = []noise{
	{"normal", (*rand.Rand).NormFloat64},
	{"exponential", func(rng *rand.Rand) float64 { return rng.ExpFloat64() - math.Ln2 }},
	{"lognormal", func(rng *rand.Rand) float64 { return math.Expm1(rng.NormFloat64()) }},
	{"pairs", func(rng *rand.Rand) float64 {
		drift := 5 * rng.NormFloat64()
		return (drift + rng.ExpFloat64()) - (drift + rng.ExpFloat64())
	}},
}

// repeats draws n values around a median.
func (noise noise) repeats(rng *rand.Rand, n int, median float64) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = median + noise.draw(rng)
	}
	return xs
}

// Selftest has a judge decide synthetic experiments of which the truth is known. The
// report is a function of its arguments.
func Selftest(trials int, seed uint64, judge Func) Report {
	const half = 1. / 16  // of the error over all looks: a wrong verdict at one bound
	const promised = 0.05 // what is left of half in three looks, which share their first repeats
	var rows []*Row
	var running sync.WaitGroup
	test := func(name string, repeats, trials int, least, most float64, hit func(*rand.Rand) bool) {
		row := &Row{Test: name, Repeats: repeats, Trials: trials, Least: least, Most: most}
		rng := rand.New(rand.NewPCG(seed, uint64(len(rows))))
		rows = append(rows, row)
		running.Go(func() { row.run(rng, hit) })
	}
	for _, noise := range noises {
		// decide has a floor from as many differences of the noise.
		decide := func(rng *rand.Rand, rule Rule, xs []float64) Verdict {
			return judge(Question{Rule: rule}, Input{Values: xs, Floor: noise.repeats(rng, len(xs), 0), hasty: true}).Verdict
		}
		for _, c := range []struct {
			n, disturbed int
			least, most  float64
		}{{5, 0, .93, .97}, {7, 0, .93, .97}, {10, 0, .93, .97}, {20, 0, .93, .97}, {5, 1, .9, 1}, {10, 2, .9, 1}} {
			test(fmt.Sprintf("%s: the interval contains the median, %d disturbed", noise.name, c.disturbed), c.n, trials, c.least, c.most, func(rng *rand.Rand) bool {
				xs := noise.repeats(rng, c.n, 0)
				for i := range c.disturbed {
					xs[i] = xs[i]*3 + 5
				}
				ans := judge(Question{Rule: AtLeast(-inf)}, Input{Values: xs})
				return ans.Low <= 0 && 0 <= ans.High
			})
		}
		test(noise.name+": wrong at a bound in three looks", 28, trials, 0, promised, func(rng *rand.Rand) bool {
			return inLooks(judge, rng, func() float64 { return noise.draw(rng) }, false, doubled)
		})
		test(noise.name+": wrong at a bound that sessions cross by the spread", 7, trials, 0, half, func(rng *rand.Rand) bool {
			xs := noise.repeats(rng, 7, 4*rng.Float64()-2)
			return judge(Question{Rule: AtLeast(0), Spread: 2}, Input{Values: xs, hasty: true}).Verdict == Fails
		})
		test(noise.name+": without an effect, one beyond noise is claimed", 7, trials, 0, half, func(rng *rand.Rand) bool {
			return decide(rng, Above(0), noise.repeats(rng, 7, 0)) != Inconclusive
		})
		test(noise.name+": without an effect, no larger one than 20 deviations holds", 7, trials, .9, 1, func(rng *rand.Rand) bool {
			return decide(rng, Between(-20, 20), noise.repeats(rng, 7, 0)) == Holds
		})
		for i, want := range []Verdict{Fails, Holds} {
			effect := float64(40*i - 20)
			test(fmt.Sprintf("%s: an effect of %+.0f deviations is found", noise.name, effect), 7, trials, .9, 1, func(rng *rand.Rand) bool {
				return decide(rng, Above(0), noise.repeats(rng, 7, effect)) == want
			})
		}
	}
	normal := noises[0]
	// Effects that are not obvious. The A/A differences have the deviation of the values.
	for _, effect := range []float64{1, 1.5, 2, 3} {
		for _, n := range []int{7, 9, 20, 50} {
			least := 0.
			if effect*math.Sqrt(float64(n)) > 6.5 {
				least = .9
			}
			test(fmt.Sprintf("normal: an effect of %g deviations is found", effect), n, trials, least, 1, func(rng *rand.Rand) bool {
				return judge(Question{Rule: Above(0)}, Input{Values: normal.repeats(rng, n, effect), Floor: normal.repeats(rng, n, 0), hasty: true}).Verdict == Holds
			})
		}
	}
	test("normal: one disturbed repeat of seven costs no verdict", 7, max(min(trials, 100), trials/20), .9, 1, func(rng *rand.Rand) bool {
		xs := normal.repeats(rng, 7, 0)
		xs[rng.IntN(7)] += 100
		for look := range 3 {
			ans := judge(Question{Rule: Between(-20, 20)}, Input{Values: xs, Looks: look, Seed: rng.Uint64()})
			if ans.Verdict != Inconclusive || ans.MoreRuns == 0 {
				return ans.Verdict == Holds
			}
			xs = append(xs, normal.repeats(rng, ans.MoreRuns, 0)...)
		}
		return false
	})
	atBound := func(name string, n int, most float64, paired bool, draw func(*rand.Rand) []float64) {
		test(name, n, trials, 0, most, func(rng *rand.Rand) bool {
			in := Input{Values: draw(rng), hasty: true}
			if paired {
				in.Floor = draw(rng)
			}
			return judge(Question{Rule: AtLeast(0)}, in).Verdict == Fails
		})
	}
	for _, n := range []int{7, 10, 20, 50} {
		atBound("normal with a drift of four deviations: wrong at a bound", n, half, true, func(rng *rand.Rand) []float64 {
			xs := normal.repeats(rng, n, 0)
			for i := range xs {
				xs[i] += 4*float64(i)/float64(n-1) - 2
			}
			return xs
		})
		for _, follow := range []float64{.3, .5, .8} {
			follows := func(rng *rand.Rand) (xs []float64) {
				next := following(rng, follow)
				for range n {
					xs = append(xs, next())
				}
				return xs
			}
			most, alone := half, half
			if follow > .5 { // told, not promised
				most, alone = 1, 1
			}
			if n < 20 { // too few to show a correlation
				alone = 1
			}
			name := fmt.Sprintf("normal, each repeat follows the last with %g: wrong at a bound", follow)
			atBound(name, n, most, true, follows)
			atBound(name+", no A/A", n, alone, false, follows)
		}
		test("normal: an instrument with a bias of two deviations shows an effect", n, trials, 0, half, func(rng *rand.Rand) bool {
			return judge(Question{Rule: Above(0)}, Input{Values: normal.repeats(rng, n, 2), Floor: normal.repeats(rng, n, 2), hasty: true}).Verdict != Inconclusive
		})
		sixFail := func(rng *rand.Rand) (chances []float64) {
			for range 6 {
				if ans := judge(Question{Rule: AtLeast(0)}, Input{Values: normal.repeats(rng, n, 0), hasty: true}); ans.Verdict == Fails {
					chances = append(chances, ans.Chance)
				}
			}
			return chances
		}
		test("normal: a claim of six parts at their bounds fails, by Holm", n, trials, 0, half, func(rng *rand.Rand) bool {
			return slices.Contains(Holm(sixFail(rng), 6, half/2), true)
		})
		test("normal: the same without Holm", n, trials, 0, 1, func(rng *rand.Rand) bool { // told, not promised
			return len(sixFail(rng)) > 0
		})
	}
	// The whole rule by which a session stops, at a bound. A correlation that seven repeats hardly show is
	// told, not promised.
	for _, follow := range []float64{0, .5} {
		name, most := "normal", promised
		if follow > 0 {
			name, most = fmt.Sprintf("normal, lag-1 correlation %g", follow), 1
			test(name+": wrong at a bound in three looks", 28, trials, 0, most, func(rng *rand.Rand) bool {
				return inLooks(judge, rng, following(rng, follow), false, doubled)
			})
		}
		test(name+": wrong at a bound in three looks, A/A", 28, trials, 0, most, func(rng *rand.Rand) bool {
			return inLooks(judge, rng, following(rng, follow), true, doubled)
		})
		test(name+": wrong at a bound, going on as advised", 7, trials/10, 0, most, func(rng *rand.Rand) bool {
			return inLooks(judge, rng, following(rng, follow), false, advised)
		})
	}
	test("any noise: settled by as many more runs as advised", 7, max(min(trials, 100), trials/20), .7, 1, func(rng *rand.Rand) bool {
		for range 1000 { // until there is advice
			noise, truth, q := noises[rng.IntN(len(noises))], 6*rng.Float64()-3, Question{Rule: AtLeast(0)}
			xs := noise.repeats(rng, 7, truth)
			if ans := judge(q, Input{Values: xs, Seed: rng.Uint64()}); ans.MoreRuns > 0 {
				xs = append(xs, noise.repeats(rng, ans.MoreRuns, truth)...)
				return judge(q, Input{Values: xs, Looks: 1, hasty: true}).Verdict != Inconclusive
			}
		}
		return false
	})
	running.Wait()
	return Report{Seed: seed, Rows: rows}
}

// following draws values of a first-order process with that correlation, of deviation 1 around 0.
func following(rng *rand.Rand, follow float64) func() float64 {
	last := rng.NormFloat64()
	return func() float64 {
		last = follow*last + math.Sqrt(1-follow*follow)*rng.NormFloat64()
		return last
	}
}

// mostLooks is how often a session judges one question.
const mostLooks = 3

// How many more repeats an open question gets: as many as there are, or as many as are advised.
func doubled(ans Answer) int { return ans.Repeats }
func advised(ans Answer) int { return ans.MoreRuns }

// inLooks has a session decide a question whose truth is a bound of its rule, and reports whether the
// verdict is wrong. The first look is at as many repeats as a verdict takes. Where it decides nothing,
// the question gets more repeats, and is looked at again.
func inLooks(judge Func, rng *rand.Rand, draw func() float64, paired bool, more func(Answer) int) bool {
	rule, wrong := AtLeast(0), Fails
	if rng.IntN(2) == 0 {
		rule, wrong = Above(0), Holds
	}
	in := Input{Seed: rng.Uint64(), hasty: more(Answer{Repeats: 1}) > 0}
	for n := LeastFollow; in.Looks < mostLooks && n > 0; in.Looks++ {
		for range n {
			in.Values = append(in.Values, draw())
			if paired {
				in.Floor = append(in.Floor, draw())
			}
		}
		ans := judge(Question{Rule: rule}, in)
		if ans.Verdict != Inconclusive {
			return ans.Verdict == wrong
		}
		n = more(ans)
	}
	return false
}

func (r *Row) run(rng *rand.Rand, hit func(*rand.Rand) bool) {
	hits, slack := 0, 4. // standard errors
	if r.Trials >= fullTrials {
		slack = 0
	}
	for range r.Trials {
		if hit(rng) {
			hits++
		}
	}
	r.Share = float64(hits) / float64(max(1, r.Trials))
	allowed := func(limit float64) float64 { return slack * math.Sqrt(limit*(1-limit)/float64(r.Trials)) }
	r.Passed = r.Trials > 0 && r.Share >= r.Least-allowed(r.Least) && r.Share <= r.Most+allowed(r.Most)
}

// String is a line of the table.
func (r *Row) String() string {
	passed, limits := "FAIL", fmt.Sprintf("%.0f–%.2f %%", 100*r.Least, 100*r.Most)
	if r.Passed {
		passed = "pass"
	}
	return fmt.Sprintf("%-75s %7d %7d %7.2f %% %11s %s", r.Test, r.Repeats, r.Trials, 100*r.Share, limits, passed)
}

// Err names the tests that failed.
func (r Report) Err() error {
	var errs []error
	for _, row := range r.Rows {
		if !row.Passed {
			errs = append(errs, errors.New(row.String()))
		}
	}
	return errors.Join(errs...)
}

// String is the table.
func (r Report) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%-75s %7s %7s %9s %11s\n", "test of the judge, by the noise", "repeats", "trials", "share", "right is")
	for _, row := range r.Rows {
		fmt.Fprintln(&out, row)
	}
	return out.String()
}
