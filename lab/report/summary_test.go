package report

import (
	"slices"
	"testing"

	"github.com/spillway-go/spillway/lab/results"
)

func rates(setup, load, pattern string, good ...uint64) (runs []results.Run) {
	for i, n := range good {
		runs = append(runs, results.Run{Setup: setup, Load: load, Pattern: pattern, Repeat: i, Elapsed: 1, Offered: n,
			Outcomes: []results.Outcome{{Kind: "ok", Count: n}}})
	}
	return runs
}

func TestMediansAreTakenOverTheRepeatsWithoutTwinsAndFailures(t *testing.T) {
	runs := rates("real", "high", "workerpool", 10, 30, 20)
	twin, failed := runs[0], runs[0]
	twin.Twin, twin.Outcomes = true, []results.Outcome{{Kind: "ok", Count: 1e6}}
	failed.Failed = "port in use"
	sum := summarize(append(runs, twin, failed))
	c := sum.setups[0].loads[0].cells[0]
	if c.good.median() != 20 || c.runs != 3 || sum.twins != 1 || len(sum.failed) != 1 || len(c.failed) != 1 {
		t.Errorf("median %v of %d runs, %d twins, %d failed", c.good.median(), c.runs, sum.twins, len(sum.failed))
	}
}

func TestAKilledRunIsAResult(t *testing.T) {
	runs := rates("real", "high", "naive", 10, 30)
	runs[1].Killed = "memory cap"
	c := summarize(runs).setups[0].loads[0].cells[0]
	if c.runs != 2 || len(c.killed) != 1 || c.good.median() != 20 {
		t.Errorf("%+v", c)
	}
}

func TestSetupsLoadsAndContestantsComeInReadingOrder(t *testing.T) {
	var runs []results.Run
	for _, s := range []string{"zzz", "real", "published"} {
		for _, l := range []string{"sustained", "odd", "low", "high"} {
			for _, p := range []string{"ants", "limiter", "naive", "workerpool"} {
				runs = append(runs, rates(s, l, p, 1)...)
			}
		}
	}
	sum := summarize(runs)
	var setups, loads []string
	for _, g := range sum.setups {
		setups = append(setups, g.setup)
	}
	for _, l := range sum.setups[0].loads {
		loads = append(loads, l.load)
	}
	if want := []string{"published", "real", "zzz"}; !slices.Equal(setups, want) {
		t.Errorf("set-ups %v, want %v", setups, want)
	}
	if want := []string{"low", "high", "sustained", "odd"}; !slices.Equal(loads, want) {
		t.Errorf("loads %v, want %v", loads, want)
	}
	if want := []string{"naive", "workerpool", "limiter", "ants"}; !slices.Equal(sum.patterns, want) {
		t.Errorf("contestants %v, want %v", sum.patterns, want)
	}
}

func TestAdviceFollowsTheVerdicts(t *testing.T) {
	f := familyOf("H")
	decided := func(v results.Verdict) (all []results.OldClaim) {
		for _, r := range f.Recommendations {
			for _, id := range r.RestsOn {
				all = append(all, results.OldClaim{ID: id, Setup: "for real", Verdict: v})
			}
		}
		return all
	}
	for v, want := range map[results.Verdict]string{
		results.Holds:        "Our measurement supports this.",
		results.Fails:        "Our measurement does not support this.",
		results.Inconclusive: "Our measurement does not decide this.",
	} {
		for _, r := range recommend(f.Family, decided(v)) {
			if r.Answer != want || len(r.Missing) != 0 || len(r.Cited) == 0 {
				t.Errorf("everything %s: %s: %s citing %d, missing %v", v, r.For, r.Answer, len(r.Cited), r.Missing)
			}
		}
	}
	for _, r := range recommend(f.Family, nil) {
		if r.Answer != "Our measurement does not decide this." || len(r.Missing) == 0 {
			t.Errorf("nothing decided: %s: %s", r.For, r.Answer)
		}
	}
}

func TestFormats(t *testing.T) {
	for got, want := range map[string]string{
		nanos(75.9e6): "75.9 ms", nanos(812): "812 ns", nanos(1.2e9): "1.20 s", nanos(999_700): "1.00 ms", nanos(0): "0",
		size(1.41 * (1 << 30)): "1.41 GiB", size(512): "512 B", percent(.051): "5.10 %",
		command([]string{"spillway", "lab", "H", "--out", "it's here", ""}): `spillway lab H --out 'it'\''s here' ''`,
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestNamesThatEndInANumberAreSortedByIt(t *testing.T) {
	got := []string{"PoolSharedChan_100", "bound 16", "Serial", "bound 2", "PoolSharedChan_10", "naive"}
	slices.SortFunc(got, byRank(knownPatterns))
	if want := []string{"naive", "PoolSharedChan_10", "PoolSharedChan_100", "Serial", "bound 2", "bound 16"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
