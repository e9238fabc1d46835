package ladder

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/results"
)

func tiny() Config {
	return Config{Conns: 2, Requests: 20, Rounds: 1, MemoryCap: 1 << 30}
}

func TestNoServerIsPlannedTwice(t *testing.T) {
	plan, err := Classic{tiny()}.Plan()
	if err != nil || plan.Scaled == "" || len(plan.Cells) != len(entries()) {
		t.Fatalf("%d cells, scaled %q, %v", len(plan.Cells), plan.Scaled, err)
	}
	seen := map[string]bool{}
	for _, c := range plan.Cells {
		if seen[c.Label()] {
			t.Errorf("%s is planned twice", c.Label())
		}
		seen[c.Label()] = true
	}
}

func TestBadSettingsAreNamed(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"connections is 0":     func(c *Config) { c.Conns = 0 },
		"requests is 0":        func(c *Config) { c.Requests = 0 },
		"rounds is 0":          func(c *Config) { c.Rounds = 0 },
		"per-connection is -1": func(c *Config) { c.PerConn = -1 },
	} {
		c := tiny()
		change(&c)
		if _, err := (Classic{c}).Plan(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	if got := Defaults().scaled(); got != "" {
		t.Errorf("full size says %q", got)
	}
}

// made are runs whose savings add up: microseconds of each rung.
func made(worth map[Rungs]float64) []results.Run {
	all := entries()
	var out []results.Run
	for repeat := range 4 {
		runs := make([]results.Run, len(all))
		for i, en := range all {
			us := 9.0
			for r, w := range worth {
				if en.job.Kind == "" || en.job.Kind == FastHTTP {
					if !en.job.Save.Has(r) {
						us += w
					}
				}
				if en.job.Kind == NetHTTP || en.job.Kind == NetHTTPPooled && r != Workers {
					us += w
				}
			}
			if en.job.Kind == Raw {
				us = 8
			}
			us *= 1 + .001*float64(repeat) // drift, the same for all
			runs[i] = results.Run{Setup: en.setup, Load: Load, Pattern: en.pattern, Twin: en.twin, Repeat: repeat, Elapsed: 1,
				Extra: map[string]float64{"cpu_us": us}}
		}
		stack(all, runs)
		out = append(out, runs...)
	}
	return out
}

func TestVerdictsFollowTheRuns(t *testing.T) {
	like := Classic{}.Judge(made(map[Rungs]float64{State: 2, Bytes: 1.5, Parser: 1, Workers: .5}), 1)
	for _, c := range []struct {
		id, setup string
		want      float64
	}{
		{"G7", "share and order", 10}, {"G7/workers", "all orders", 10}, {"G7/workers", "given to net/http", 10},
		{"G7/workers", "taken from fasthttp", 10}, {"G7/order", "pooled state > byte API", 10}, {"G7/most", "all orders", 70},
		{"G7/counts", "own parser", 20}, {"G7/explained", "all orders", 100}, {"G7/placebo", "all orders", 0},
		{"G7/rest", restHigh, 0}, {"G7/rest", restLow, 0},
	} {
		if got := labtest.Claim(t, like, c.id, c.setup); got.Verdict != results.Holds || math.Abs(got.Measured-c.want) > .01 {
			t.Errorf("%s (%s) %s with %.2f, want %.2f: %s", c.id, c.setup, got.Verdict, got.Measured, c.want, got.Why)
		}
	}
	unlike := Classic{}.Judge(made(map[Rungs]float64{State: .5, Bytes: 1, Unwatched: 3, OneBuffer: .5}), 1)
	for id, setup := range map[string]string{
		"G7": "share and order", "G7/workers": "all orders", "G7/order": "pooled state > byte API",
		"G7/most": "all orders", "G7/counts": "connection workers",
	} {
		if got := labtest.Claim(t, unlike, id, setup); got.Verdict != results.Fails {
			t.Errorf("%s (%s) %s: %s", id, setup, got.Verdict, got.Why)
		}
	}
	got := labtest.Claim(t, unlike, "G7", "share and order")
	for _, want := range []string{"By share: no background read 60.0 % (60.0 to 60.0), byte API 20.0 %", "byte API > own parser: holds"} {
		if !strings.Contains(got.Why, want) {
			t.Errorf("no %q: %s", want, got.Why)
		}
	}
	none := made(nil) // no lead, so no shares
	if got := labtest.Claim(t, Classic{}.Judge(none, 1), "G7", "share and order"); got.Verdict != results.Inconclusive {
		t.Errorf("without a lead %s: %s", got.Verdict, got.Why)
	}
}

// The slow way is to try every order.
func TestASavingIsWorthItsMeanOverAllOrders(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	have := map[cell]float64{}
	for set := range AllRungs + 1 {
		have[small(set)] = 10 * rng.Float64()
		have[twin(small(set))] = have[small(set)]
	}
	of := func(c cell) float64 { return have[c] }
	slowly := map[Rungs]float64{}
	var climb func(set Rungs, chance float64)
	climb = func(set Rungs, chance float64) {
		left := float64((AllRungs &^ set).count())
		for _, r := range Ordered {
			if !set.Has(r) {
				slowly[r] += chance / left * (at(of, set) - at(of, set|r))
				climb(set|r, chance/left)
			}
		}
	}
	climb(0, 1)
	for _, r := range Ordered {
		if got := worth(r)(of); math.Abs(got-slowly[r]) > 1e-9 {
			t.Errorf("%s: %v, want %v", r, got, slowly[r])
		}
	}
}

// Savings that are worth more together share the difference. Rests of either sign
// count.
func TestWhatIsExplainedIsTheLeadWithoutItsRests(t *testing.T) {
	for _, c := range []struct {
		name             string
		pair, triple     float64 // µs that two, and three, of the savings cost only when all of them are off
		high, low        float64 // µs of net/http beyond the small server, and of fasthttp
		explained, state float64 // per cent of the lead
	}{
		{name: "nothing else", explained: 100, state: 25},
		{name: "a pair", pair: 2, explained: 100, state: 30}, // 1+1 of 10
		{name: "three", triple: 3, explained: 100, state: 100 * 3. / 11},
		{name: "net/http does more", high: 2, explained: 80, state: 20},
		{name: "both do more", high: 2, low: 2, explained: 50, state: 25},
	} {
		t.Run(c.name, func(t *testing.T) {
			worth := map[Rungs]float64{State: 2, Bytes: 3, Parser: 3}
			all := entries()
			runs := make([]results.Run, len(all))
			for i, en := range all {
				save, us := en.job.Save, 9.0
				if en.job.Kind == NetHTTP || en.job.Kind == NetHTTPPooled {
					save, us = 0, us+c.high
				}
				if en.job.Kind == FastHTTP {
					us += c.low
				}
				for r, w := range worth {
					if !save.Has(r) {
						us += w
					}
				}
				if !save.Has(State) && !save.Has(Bytes) {
					us += c.pair
				}
				if !save.Has(State) && !save.Has(Bytes) && !save.Has(Parser) {
					us += c.triple
				}
				runs[i] = results.Run{Setup: en.setup, Load: Load, Pattern: en.pattern, Twin: en.twin, Elapsed: 1, Extra: map[string]float64{"cpu_us": us}}
			}
			stack(all, runs)
			var three []results.Run
			for repeat := range 3 {
				for _, r := range runs {
					r.Repeat = repeat
					three = append(three, r)
				}
			}
			judged := Classic{}.Judge(three, 1)
			if got := labtest.Claim(t, judged, "G7/explained", "all orders"); math.Abs(got.Measured-c.explained) > .01 {
				t.Errorf("explained %.2f %%, want %.2f", got.Measured, c.explained)
			}
			if got := labtest.Claim(t, judged, "G7/counts", "pooled state"); math.Abs(got.Measured-c.state) > .01 {
				t.Errorf("pooled state %.2f %%, want %.2f", got.Measured, c.state)
			}
			// The steps add up to the lead, whatever the rests.
			net := runs[slices.IndexFunc(all, func(en entry) bool { return en.key() == named(NetHTTP) })].Extra
			total := net["floor_us"] + net["above_us"]
			for _, r := range Ordered {
				total += net[r.key()]
			}
			for _, r := range rests {
				total += net[r.key]
			}
			if math.Abs(total-net["cpu_us"]) > 1e-9 {
				t.Errorf("the parts are %v of %v", total, net)
			}
		})
	}
}

func TestEveryClaimIsJudgedAsOpenWithoutRuns(t *testing.T) {
	judged := Classic{}.Judge(nil, 1)
	for _, c := range claims.Ladder.Claims {
		i := slices.IndexFunc(judged, func(j results.OldClaim) bool { return j.ID == c.ID })
		if i < 0 || judged[i].Verdict != results.Inconclusive || judged[i].Why == "" {
			t.Errorf("%s without runs is not judged as open", c.ID)
		}
	}
}
