package loadgen

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAMixReportsEachClassApart(t *testing.T) {
	for name, cfg := range map[string]Config{
		"closed": {Closed: &Closed{Clients: 7, Requests: 10_000}},
		"open":   {Open: Constant(1000, 10*time.Second)},
	} {
		synctest.Test(t, func(t *testing.T) {
			takesAndReturns := func(d time.Duration, o Outcome) TargetFunc {
				return func(context.Context, uint64) Outcome {
					time.Sleep(d)
					return o
				}
			}
			target, err := Mix(1,
				Part{"critical", 1, takesAndReturns(time.Millisecond, OK)},
				Part{"low", 2.5, takesAndReturns(2*time.Millisecond, Rejected)},
				Part{"critical", 1.5, takesAndReturns(3*time.Millisecond, Error)},
			)
			if err != nil {
				t.Fatal(err)
			}
			cfg.Target = target
			r := mustRun(t, t.Context(), cfg)
			if len(r.Classes) != 2 || r.Classes[0].Name != "critical" || r.Classes[1].Name != "low" {
				t.Fatalf("%s: %d classes", name, len(r.Classes))
			}
			critical, low := r.Classes[0].Outcomes, r.Classes[1].Outcomes
			for o := range r.Outcomes {
				if critical[o].Count+low[o].Count != r.Outcomes[o].Count || critical[o].Count != critical[o].Latency.Count() {
					t.Errorf("%s %v: %d critical, %d low, %d in all", name, Outcome(o), critical[o].Count, low[o].Count, r.Outcomes[o].Count)
				}
			}
			for _, c := range []struct {
				got  OutcomeResult
				want float64
				took time.Duration
			}{{critical[OK], 2000, time.Millisecond}, {low[Rejected], 5000, 2 * time.Millisecond}, {critical[Error], 3000, 3 * time.Millisecond}} {
				if !within(float64(c.got.Count), c.want, 0.1) || c.got.Latency.Max() != int64(c.took) || c.got.Latency.Min() != int64(c.took) {
					t.Errorf("%s: %d, want %v, each in %v", name, c.got.Count, c.want, c.took)
				}
			}
		})
	}
}

func TestTheSameSeedSendsTheSameMix(t *testing.T) {
	parts := []Part{{"a", 1, instant}, {"b", 1, instant}}
	classes := func(seed uint64) (s string) {
		target := must(Mix(seed, parts...))(t)
		for n := range uint64(100) {
			s += parts[target.(classed).class(n)].Class
		}
		return s
	}
	if first, again := classes(1), classes(1); first != again || first == classes(2) {
		t.Error("a mix does not depend on its seed alone")
	}
}

func TestABadMixSaysWhatIsWrong(t *testing.T) {
	for want, parts := range map[string][]Part{
		"a mix of 0 parts": {},
		`part ""`:          {{"", 1, instant}},
		`part "a"`:         {{"a", 0, instant}},
		"not -1":           {{"b", -1, instant}},
		`part "c"`:         {{"c", 1, nil}},
	} {
		if _, err := Mix(1, parts...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}

func TestProgressHasTheLatenciesSinceTheLastOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []Snapshot
		begin := time.Now()
		mustRun(t, t.Context(), Config{
			Open: Constant(10, 2950*time.Millisecond),
			Target: TargetFunc(func(context.Context, uint64) Outcome {
				second := int(time.Since(begin) / time.Second)
				time.Sleep([]time.Duration{10, 20, 30}[second] * time.Millisecond)
				return []Outcome{OK, OK, Rejected}[second]
			}),
			Progress: func(s Snapshot) { seen = append(seen, s) },
		})
		if len(seen) != 3 {
			t.Fatalf("%d snapshots, want 3", len(seen))
		}
		for i, want := range []struct {
			ok   uint64
			took time.Duration
		}{{10, 10 * time.Millisecond}, {10, 20 * time.Millisecond}, {0, 0}} {
			if s := seen[i]; s.Latency.Count() != want.ok || s.Latency.Max() != int64(want.took) || s.Lag.Count() != 10 {
				t.Errorf("snapshot %d: %d latencies up to %v, %d lags", i, s.Latency.Count(), time.Duration(s.Latency.Max()), s.Lag.Count())
			}
		}
	})
}
