package oldjudge

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/spillway-go/spillway/lab/results"
)

// Func is a judge; [Judge] is the one the lab uses.
type Func func(Question, Input) Answer

// The noise that Selftest plants. Drift is what the runs of a repeat share (a warm or
// a throttled machine, a noisy neighbour) and what pairing cancels. The rest is
// independent for each run: Student's t with 5 degrees of freedom, so
// that a run off by four standard deviations is one in three hundred and not, as
// with normal noise, one in fifteen thousand. With 1.4 % a run the
// standard deviation of a paired ratio is 2 %: more than the throughput of a
// closed loop over a slow store shows between repeats, about that of a p99.
// Three repeats find 20 % in nine of ten trials up to a deviation of 3 %, five
// up to 4.5 %; noisier figures need more repeats, and their verdicts say so.
const (
	plantedDrift = 0.05
	plantedNoise = 0.014
	plantedTail  = 5
)

// The requirements of Selftest.
const (
	falseAllowed  = 0.05 // most false verdicts, of all trials
	foundRequired = 0.90 // least 20 % effects found
	mustFind      = 0.20
)

// Row counts the verdicts on one planted effect.
type Row struct {
	Repeats      int     `json:"repeats"`
	Effect       float64 `json:"effect"` // 0.05: one contestant is 5 % ahead
	Holds        int     `json:"holds"`
	Fails        int     `json:"fails"`
	Inconclusive int     `json:"inconclusive"`
	Found        int     `json:"found"`   // the planted effect, in its direction
	False        int     `json:"false"`   // an effect that is not there, or there in the other direction
	Covered      int     `json:"covered"` // intervals that contain the planted effect
}

// Report counts the verdicts on the planted effects.
type Report struct {
	Trials int    `json:"trials"` // of each row
	Seed   uint64 `json:"seed"`
	Rows   []Row  `json:"rows"`
}

// Selftest plants effects of 0, 5 and 20 % into trials synthetic experiments
// each, of 3, 5 and 10 repeats with an A/A pair beside every pair, and asks
// judge whether the first contestant is ahead by more than the noise. Every
// other trial plants the effect against it, so that the right verdict is Fails.
//
// A verdict is false if it claims an effect that is not there, in either
// direction: with nothing planted any Holds or Fails, else the one of the wrong
// direction. Inconclusive is never false; it is only not a find.
//
// The report is a function of trials, seed and judge. See [Report.Err] for what
// it demands.
func Selftest(trials int, seed uint64, judge Func) Report {
	report := Report{Trials: trials, Seed: seed}
	question := Question{Subject: "planted effect", Unit: "x", Figure: Ratio, Rule: HigherThanNoise()}
	for _, repeats := range []int{3, 5, 10} {
		for _, effect := range []float64{0, 0.05, 0.20} {
			row := Row{Repeats: repeats, Effect: effect}
			for trial := range trials {
				rng := rand.New(rand.NewPCG(seed, uint64(trial)<<8|uint64(repeats)))
				ratio := 1 + effect
				if trial%2 == 1 {
					ratio = 1 / ratio
				}
				row.count(judge(question, plant(rng, repeats, ratio)), ratio)
			}
			report.Rows = append(report.Rows, row)
		}
	}
	return report
}

// plant makes the runs of one experiment in which the first contestant is ratio
// times the second.
func plant(rng *rand.Rand, repeats int, ratio float64) Input {
	in := Input{Seed: rng.Uint64()}
	for range repeats {
		drift := plantedDrift * rng.NormFloat64()
		run := func(level float64) float64 { return 1000 * level * math.Exp(drift+plantedNoise*heavyTailed(rng)) }
		in.Pairs = append(in.Pairs, Pair{A: run(ratio), B: run(1)})
		in.AA = append(in.AA, Pair{A: run(1), B: run(1)})
	}
	return in
}

// heavyTailed draws from Student's t with plantedTail degrees of freedom,
// scaled to a standard deviation of 1.
func heavyTailed(rng *rand.Rand) float64 {
	squares := 0.0
	for range plantedTail {
		z := rng.NormFloat64()
		squares += z * z
	}
	return rng.NormFloat64() / math.Sqrt(squares/(plantedTail-2))
}

func (r *Row) count(ans Answer, ratio float64) {
	if ans.Low <= ratio && ratio <= ans.High {
		r.Covered++
	}
	switch ans.Verdict {
	case results.Holds:
		r.Holds++
	case results.Fails:
		r.Fails++
	default:
		r.Inconclusive++
		return
	}
	if ratio > 1 && ans.Verdict == results.Holds || ratio < 1 && ans.Verdict == results.Fails {
		r.Found++
	} else {
		r.False++
	}
}

// Err says what the judge got wrong: more than 5 % false verdicts on any row, or
// fewer than 90 % of the 20 % effects found. 5 % effects must only not be reported in
// the wrong direction.
func (r Report) Err() error {
	var errs []error
	if r.Trials < 1 {
		errs = append(errs, errors.New("no trials: nothing was tested"))
	}
	for _, row := range r.Rows {
		if share := r.share(row.False); share > falseAllowed {
			errs = append(errs, fmt.Errorf("%d repeats, %.0f %% planted: %.1f %% of the verdicts are false, at most %.0f %% may be",
				row.Repeats, 100*row.Effect, 100*share, 100*falseAllowed))
		}
		if share := r.share(row.Found); row.Effect >= mustFind && share < foundRequired {
			errs = append(errs, fmt.Errorf("%d repeats, %.0f %% planted: found in %.1f %% of the trials, at least %.0f %% are required",
				row.Repeats, 100*row.Effect, 100*share, 100*foundRequired))
		}
	}
	return errors.Join(errs...)
}

func (r Report) share(n int) float64 { return float64(n) / float64(max(1, r.Trials)) }

// String is the table, with a sentence about small effects.
func (r Report) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%d trials a row, seed %d; paired ratios with a standard deviation of %.0f %%, heavy-tailed, drift of %.0f %% shared in the pair\n\n",
		r.Trials, r.Seed, 100*plantedNoise*math.Sqrt2, 100*plantedDrift)
	fmt.Fprintln(&out, "repeats  planted    found    false  inconclusive  interval contains it")
	for _, row := range r.Rows {
		found := fmt.Sprintf("%.1f %%", 100*r.share(row.Found))
		if row.Effect == 0 {
			found = "–"
		}
		fmt.Fprintf(&out, "%7d  %5.0f %%  %7s  %5.1f %%  %10.1f %%  %18.1f %%\n", row.Repeats, 100*row.Effect,
			found, 100*r.share(row.False), 100*r.share(row.Inconclusive), 100*r.share(row.Covered))
	}
	out.WriteString(r.smallEffects())
	return out.String()
}

// smallEffects is the measured power at 5 %.
func (r Report) smallEffects() string {
	var found []string
	for _, row := range r.Rows {
		if row.Effect > 0 && row.Effect < mustFind {
			found = append(found, fmt.Sprintf("%.0f %% of the trials at %d", 100*r.share(row.Found), row.Repeats))
		}
	}
	return fmt.Sprintf("\nAn effect of 5 %% was found in %s repeats. It is close to the noise and its A/A floor,\n"+
		"so an inconclusive verdict does not say that two contestants are equal to within 5 %%.\n", strings.Join(found, ", "))
}
