package compare

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/internal/soak"
)

// planted measures a value with 3 % of noise, in which every tenth time is disturbed.
func planted(rng *rand.Rand, value float64) Measure {
	return func(context.Context) (float64, error) {
		x := value * math.Exp(.03*rng.NormFloat64())
		if rng.IntN(10) == 0 {
			x *= 1.3
		}
		return x, nil
	}
}

func TestPlantedDifferencesAreFound(t *testing.T) {
	soak.WithoutRace(t)
	latency, goodput := Metric{Name: "p99", Unit: "ms"}, Metric{Name: "goodput", More: true}
	errs := Metric{Name: "errors", Unit: "%", Zero: true}
	for _, c := range []struct {
		name   string
		metric Metric
		b      float64
		want   Verdict
	}{
		{"a lower latency", latency, .6, Better},
		{"a higher latency", latency, 1.6, Worse},
		{"a higher goodput", goodput, 1.6, Better},
		{"a lower goodput", goodput, .6, Worse},
		{"fewer errors", errs, .4, Better},
		{"more errors", errs, 1.6, Worse},
		{"none", latency, 1, Undecided},
		{"none, of goodput", goodput, 1, Undecided},
		{"none, of errors", errs, 1, Undecided},
	} {
		right := 0
		for seed := range uint64(40) {
			rng := rand.New(rand.NewPCG(seed, 5))
			r, err := Run(t.Context(), Config{Metric: c.metric, A: planted(rng, 1), B: planted(rng, c.b), Rounds: 20, Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			if r.Verdict == c.want {
				right++
			}
			if opposite := map[Verdict]Verdict{Better: Worse, Worse: Better}[c.want]; opposite != "" && r.Verdict == opposite {
				t.Errorf("%s: the opposite: %s", c.name, r.Why)
			}
		}
		if right < 37 {
			t.Errorf("%s: %s in %d of 40 sessions", c.name, c.want, right)
		}
	}
}

func TestAnUndecidedSessionSaysHowManyRoundsMore(t *testing.T) {
	var rounds []Round
	for i := range 7 { // two rounds of seven are on the other side
		rounds = append(rounds, Round{A: 10, Twin: 10 + .1*float64(i%2), B: []float64{8, 8.2, 8.1, 10.5, 8, 10.4, 8.1}[i]})
	}
	r := Judge(Metric{Name: "p99", Unit: "ms"}, rounds, 1)
	if r.Verdict != Undecided || r.More < 1 || !strings.Contains(r.Why, "should settle it") {
		t.Errorf("%+v", r)
	}
}

func TestTheSameIsUndecided(t *testing.T) {
	for _, m := range []Metric{{Name: "printed"}, {Name: "errors", Zero: true}} {
		var rounds []Round
		for range 7 {
			rounds = append(rounds, Round{3, 3, 3})
		}
		if r := Judge(m, rounds, 1); r.Verdict != Undecided || r.More != 0 || !strings.Contains(r.Why, "the same") {
			t.Errorf("%+v", r)
		}
	}
}

func TestAMissingFigureIsNoVerdict(t *testing.T) {
	rounds := []Round{{1, 1, 2}, {1, 1, 2}, {1, 1, math.NaN()}, {1, 1, 2}, {1, 1, 2}, {1, 1, 2}}
	r := Judge(Metric{Name: "p99"}, rounds, 1)
	if r.Verdict != Undecided || !strings.Contains(r.Why, "missing in 1 of 6") {
		t.Errorf("%+v", r)
	}
	data, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(data), `"b":null`) {
		t.Errorf("%s, %v", data, err)
	}
}

func TestEveryRoundMeasuresEachSideInANewOrder(t *testing.T) {
	var order []string
	measure := func(context.Context) (float64, error) { return 1, nil }
	c := Config{A: measure, B: measure, Rounds: 20, Seed: 1, Started: func(_ int, side string) { order = append(order, side) }}
	if _, err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if len(order) != 63 {
		t.Fatalf("%d measurements, want three in 20 rounds and the warm-up", len(order))
	}
	first := map[string]int{}
	for i := 0; i < len(order); i += 3 {
		first[order[i]]++
		if order[i] == order[i+1] || order[i+1] == order[i+2] || order[i] == order[i+2] {
			t.Errorf("round %d: %v", i/3, order[i:i+3])
		}
	}
	if len(first) != 3 {
		t.Errorf("%v were first", first)
	}
}

func TestACancelledSessionJudgesItsRounds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	r, err := Run(ctx, Config{Metric: Metric{Name: "p99"}, Rounds: 20, A: func(context.Context) (float64, error) { return 1, nil },
		B: func(context.Context) (float64, error) {
			if n++; n == 10 {
				cancel()
			}
			return 2, nil
		}})
	if err != nil || !r.Partial || len(r.Rounds) != 8 || r.Verdict != Worse {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestAMeasurementThatFailsIsAnError(t *testing.T) {
	boom := errors.New("boom")
	_, err := Run(t.Context(), Config{Rounds: 5, A: func(context.Context) (float64, error) { return 1, nil }, B: func(context.Context) (float64, error) { return 0, boom }})
	if !errors.Is(err, boom) || !strings.HasPrefix(err.Error(), "B: ") {
		t.Error(err)
	}
}
