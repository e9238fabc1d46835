// Package compare says which of two is better: two URLs under the same load, or two
// commands.
//
// Both are measured in turns, in a new order every round, so that a slow minute of the
// machine falls on both, and compared within a round. A is measured twice a round: what A
// differs from itself is the noise floor below which no difference is believed. Package
// judge decides.
package compare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/load/judge"
)

// Measure takes a figure of one side once. A figure that there is not is NaN.
type Measure func(ctx context.Context) (float64, error)

// Metric is what is compared.
type Metric struct {
	Name string
	Unit string
	More bool // is better
	Zero bool // 0 is an ordinary value, so that differences are compared and not ratios
}

// Config says what to compare, and how often.
type Config struct {
	Metric  Metric
	A, B    Measure
	Rounds  int
	Seed    uint64 // of the order
	Started func(round int, side string)
}

// Round is what one round measured.
type Round struct{ A, Twin, B float64 }

// MarshalJSON writes null for a figure that there is not.
func (r Round) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]*float64{"a": known(r.A), "twin": known(r.Twin), "b": known(r.B)})
}

// known is nil for a figure that there is not, as JSON has no NaN.
func known(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// Verdict is the answer.
type Verdict string

// The verdicts.
const (
	Better    Verdict = "B is better"
	Worse     Verdict = "B is worse"
	Undecided Verdict = "undecided"
)

// Result is the answer and what it rests on.
type Result struct {
	Schema  string   `json:"schema"`
	A       string   `json:"a"`
	B       string   `json:"b"`
	Metric  string   `json:"metric"`
	Unit    string   `json:"unit,omitempty"`
	Verdict Verdict  `json:"verdict"`
	Why     string   `json:"why"`
	MedianA *float64 `json:"median_a"`
	MedianB *float64 `json:"median_b"`
	Effect  *float64 `json:"effect"` // B to A: a ratio, of shares a difference; the median over the rounds
	Low     *float64 `json:"low"`
	High    *float64 `json:"high"`
	Floor   *float64 `json:"floor"` // what A differs from itself: of ratios the distance from 1
	More    int      `json:"more_rounds"`
	Partial bool     `json:"partial"`
	Void    string   `json:"void,omitempty"` // what the generator's machine ran out of: there is no verdict then
	Rounds  []Round  `json:"rounds"`
	Remarks []string `json:"remarks,omitempty"`
}

// Run measures and judges. The first round warms up and does not count. When ctx ends, the
// rounds that are complete are judged and the result is partial. When the generator's machine
// runs out of something, the result is undecided. An error is that of a measurement.
func Run(ctx context.Context, c Config) (*Result, error) {
	rng := rand.New(rand.NewPCG(c.Seed, 17))
	var rounds []Round
	for n := range c.Rounds + 1 {
		var r Round
		sides := []struct {
			name    string
			measure Measure
			figure  *float64
		}{{"A", c.A, &r.A}, {"A again", c.A, &r.Twin}, {"B", c.B, &r.B}}
		for _, i := range rng.Perm(len(sides)) {
			if c.Started != nil {
				c.Started(n, sides[i].name)
			}
			var err error
			if *sides[i].figure, err = sides[i].measure(ctx); ctx.Err() != nil {
				result := Judge(c.Metric, rounds, c.Seed)
				result.Partial = true
				return result, nil
			} else if void, ok := errors.AsType[voidError](err); ok {
				result := Judge(c.Metric, rounds, c.Seed)
				result.Verdict, result.Why, result.More, result.Void = Undecided, string(void), 0, string(void)
				return result, nil
			} else if err != nil {
				return nil, fmt.Errorf("%s: %w", strings.TrimSuffix(sides[i].name, " again"), err)
			}
		}
		if n > 0 {
			rounds = append(rounds, r)
		}
	}
	return Judge(c.Metric, rounds, c.Seed), nil
}

// Judge decides by the rounds.
func Judge(m Metric, rounds []Round, seed uint64) *Result {
	q := judge.Question{Subject: "B's " + m.Name + " relative to A's", Unit: "x", Ratio: true, Rule: judge.Below(1)}
	if m.Zero {
		q = judge.Question{Subject: "B's " + m.Name + " less A's", Unit: m.Unit, Rule: judge.Below(0)}
	}
	in := judge.Input{Seed: seed}
	var a, b []float64
	for _, r := range rounds {
		a, b = append(a, r.A), append(b, r.B)
		if m.Zero {
			in.Values, in.Floor = append(in.Values, r.B-r.A), append(in.Floor, r.Twin-r.A)
		} else {
			in.Values, in.Floor = append(in.Values, r.B/r.A), append(in.Floor, math.Log(r.Twin/r.A))
		}
	}
	less := judge.Judge(q, in)
	q.Rule = judge.Above(q.Rule.Top)
	more := judge.Judge(q, in)
	better, worse := less, more
	if m.More {
		better, worse = more, less
	}
	out := &Result{
		Schema: "spillway/compare/v1", Metric: m.Name, Unit: m.Unit, Verdict: Undecided, Why: better.Why,
		MedianA: known(median(a)), MedianB: known(median(b)),
		Effect: known(better.Measured), Low: known(better.Low), High: known(better.High), Floor: known(better.Floor),
		More: better.MoreRuns, Rounds: rounds,
	}
	switch {
	case better.Verdict == judge.Holds:
		out.Verdict = Better
	case worse.Verdict == judge.Holds:
		out.Verdict, out.Why, out.More = Worse, worse.Why, 0
	case better.Verdict == judge.Fails && worse.Verdict == judge.Fails:
		out.Why = "B and A are the same in nearly all rounds."
	case (better.Measured > q.Rule.Low) != m.More: // it leans to the other side
		out.Why, out.More = worse.Why, worse.MoreRuns
	}
	return out
}

// median of the figures that there are; NaN without any.
func median(values []float64) float64 {
	values = slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
