package ladder

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/ledger/ledgertest"
	"github.com/spillway-go/spillway/lab/results"
)

func TestVerdictsFollowTheFigures(t *testing.T) {
	ledgertest.Check(t, Experiment.Family, labtest.Planned(plan(experiment.Sized[Config](""))))
}

// The slow way is to try every order.
func TestASavingIsWorthItsMeanOverAllOrders(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	have := map[ledger.Key]float64{}
	for set := range AllRungs + 1 {
		have[small(set)] = 10 * rng.Float64()
	}
	of := func(k ledger.Key) float64 { return have[k] }
	slowly := map[Rungs]float64{}
	var climb func(set Rungs, chance float64)
	climb = func(set Rungs, chance float64) {
		left := float64((AllRungs &^ set).count())
		for _, r := range Ordered {
			if !set.Has(r) {
				slowly[r] += chance / left * (of(small(set)) - of(small(set|r)))
				climb(set|r, chance/left)
			}
		}
	}
	climb(0, 1)
	for _, r := range Ordered {
		if got := worth(r, of); math.Abs(got-slowly[r]) > 1e-9 {
			t.Errorf("%s: %v, want %v", r, got, slowly[r])
		}
	}
}

// made are runs of one round, repeated: microseconds of each rung, of pairs and triples of
// the first savings when all of them are off, and of net/http and fasthttp beyond the
// small server.
func made(worth map[Rungs]float64, pair, triple, high, low float64) []results.Run {
	var out []results.Run
	for repeat := range 9 {
		all := entries()
		keys, runs := make([]ledger.Key, len(all)), make([]results.Run, len(all))
		for i, e := range all {
			save, us := e.Save, 9.0
			switch e.Kind {
			case NetHTTP:
				us += high
			case FastHTTP:
				save, us = AllRungs, us+low
			}
			for r, w := range worth {
				if !save.Has(r) {
					us += w
				}
			}
			off := AllRungs &^ save
			if off.Has(State | Bytes) {
				us += pair
			}
			if off.Has(State | Bytes | Parser) {
				us += triple
			}
			keys[i] = e.Key
			runs[i] = results.Run{Setup: e.Setup, Load: e.Load, Pattern: e.Pattern, Twin: e.Twin, Repeat: repeat, Elapsed: 1}
			drift := 1 + .001*float64(repeat) // the same for all
			ledger.Keep(&runs[i], "cpu_us", []float64{us * drift, us * drift * 1.2, us * drift * .9, us * drift, us * drift})
		}
		divide(keys, runs)
		out = append(out, runs...)
	}
	return out
}

// answers are the answers by part and set-up, and the claims' verdicts.
func answers(runs []results.Run) map[string]results.Answer {
	out := map[string]results.Answer{}
	for _, c := range Experiment.Judge(runs, results.Results{Seed: 1}) {
		out[c.ID] = results.Answer{Verdict: c.Verdict, Why: c.Why}
		for _, a := range c.Answers {
			out[fmt.Sprintf("%s/%s (%s)", c.ID, a.Part, a.Setup)] = a
		}
	}
	return out
}

func TestSharesAreThoseOfTheServers(t *testing.T) {
	like := answers(made(map[Rungs]float64{State: 2, Bytes: 1.5, Parser: 1, Workers: .5}, 0, 0, 0, 0))
	for name, want := range map[string]float64{
		"G7/workers (all orders)": 10, "G7/workers (added to none)": 10, "G7/workers (taken from all)": 10,
		"G7/order (pooled state > byte API)": 10, "G7/order (pooled state and byte API > all else)": 40, "G7/order (own parser > nothing)": 20,
		"ladder-1/explained (all orders)": 100, "ladder-1/rest (" + restHigh + ")": 0, "ladder-2/precise (all orders)": 0, "ladder-2/placebo (both ends, twice)": 0,
	} {
		if got := like[name]; got.Verdict != results.Holds || math.Abs(got.Measured-want) > .01 {
			t.Errorf("%s %s with %.2f, want %.2f: %s", name, got.Verdict, got.Measured, want, got.Why)
		}
	}
	unlike := answers(made(map[Rungs]float64{State: .5, Bytes: 1, Unwatched: 3, OneBuffer: .5}, 0, 0, 0, 0))
	if like["G7"].Verdict != results.Holds || unlike["G7"].Verdict != results.Fails {
		t.Errorf("%s and %s", like["G7"].Verdict, unlike["G7"].Verdict)
	}
	none := answers(made(nil, 0, 0, 0, 0))["G7/workers (all orders)"] // no lead, so no shares
	if none.Verdict != results.Inconclusive || !none.Missing {
		t.Errorf("without a lead it is %s: %s", none.Verdict, none.Why)
	}
}

// Savings that are worth more together share the difference. Rests of either sign
// count.
func TestWhatIsExplainedIsTheLeadWithoutItsRests(t *testing.T) {
	for _, c := range []struct {
		name                    string
		pair, triple, high, low float64
		explained, state        float64 // per cent of the lead
	}{
		{name: "nothing else", explained: 100, state: 25},
		{name: "a pair", pair: 2, explained: 100, state: 30}, // 1+1 of 10
		{name: "three", triple: 3, explained: 100, state: 100 * 3. / 11},
		{name: "net/http does more", high: 2, explained: 80, state: 20},
		{name: "both do more", high: 2, low: 2, explained: 50, state: 25},
	} {
		t.Run(c.name, func(t *testing.T) {
			runs := made(map[Rungs]float64{State: 2, Bytes: 3, Parser: 3}, c.pair, c.triple, c.high, c.low)
			got := answers(runs)
			if a := got["ladder-1/explained (all orders)"]; math.Abs(a.Measured-c.explained) > .01 {
				t.Errorf("explained %.2f %%, want %.2f", a.Measured, c.explained)
			}
			if a := got["G7/order (pooled state > nothing)"]; math.Abs(a.Measured-c.state) > .01 {
				t.Errorf("pooled state %.2f %%, want %.2f", a.Measured, c.state)
			}
			// The steps add up, whatever the rests.
			for _, r := range runs {
				if ledger.KeyOf(&r) != named(NetHTTP) {
					continue
				}
				total := 0.0
				for _, p := range family.Steps.Parts {
					total += r.Extra[p.Key]
				}
				if math.Abs(total-r.Extra["lead_us"]) > 1e-9 {
					t.Errorf("the steps are %v of a lead of %v", total, r.Extra["lead_us"])
				}
			}
		})
	}
}
