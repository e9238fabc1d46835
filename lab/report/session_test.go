package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

func atRates(setup, load, pattern string, good ...uint64) (runs []results.Run) {
	for i, n := range good {
		runs = append(runs, results.Run{Setup: setup, Load: load, Pattern: pattern, Repeat: i, Elapsed: 1, Offered: n,
			Outcomes: []results.Outcome{{Kind: "ok", Count: n}}})
	}
	return runs
}

func TestMediansAreTakenOverTheRepeatsWithoutTwinsAndFailures(t *testing.T) {
	runs := atRates("real", "high", "workerpool", 10, 30, 20)
	twin, failed := runs[0], runs[0]
	twin.Twin, twin.Outcomes = true, []results.Outcome{{Kind: "ok", Count: 1e6}}
	failed.Failed, failed.Repeat = "port in use", 3
	s := newSession(ledger.Family{}, results.Results{}, append(runs, twin, failed))
	c := s.Setups[0].loads[0].cells[0]
	if got := c.stat(rate("ok")); got.median() != 20 || len(got) != 3 || len(s.Failed()) != 1 {
		t.Errorf("median %v of %d runs, %d failed", got.median(), len(got), len(s.Failed()))
	}
}

func TestAKilledRunIsAResult(t *testing.T) {
	runs := atRates("real", "high", "naive", 10, 30)
	runs[1].Killed = "memory cap"
	c := newSession(ledger.Family{}, results.Results{}, runs).Setups[0].loads[0].cells[0]
	if len(c.runs) != 2 || len(c.killed) != 1 || c.stat(rate("ok")).median() != 20 {
		t.Errorf("%+v", c)
	}
}

func TestSetupsLoadsAndContestantsComeInReadingOrder(t *testing.T) {
	var runs []results.Run
	for _, s := range []string{"zzz", "real", "published"} {
		for _, l := range []string{"sustained", "odd", "low", "high"} {
			for _, p := range []string{"ants", "limiter", "naive", "workerpool"} {
				runs = append(runs, atRates(s, l, p, 1)...)
			}
		}
	}
	sum := newSession(ledger.Family{}, results.Results{}, runs)
	var setups, loads []string
	for _, g := range sum.Setups {
		setups = append(setups, g.Name)
	}
	for _, l := range sum.Setups[0].loads {
		loads = append(loads, l.name)
	}
	if want := []string{"as published", "for real", "zzz"}; !slices.Equal(setups, want) {
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
	res, runs := fake(1)
	page, text := rendered(t, res, runs), strings.Join(strings.Fields(summed(t, res, runs, Options{Width: 140})), " ")
	for _, want := range []string{"Which pattern for patient-facing services and real-time monitoring? UNDECIDED", "H9/cleared holds, 0; H10 inconclusive, 0.985x",
		"Which pattern for batch jobs? CONTRADICTED", "H2/refused fails"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in the summary", want)
		}
	}
	if !strings.Contains(page, `<a href="#claim-H2">H2/refused</a> fails`) {
		t.Error("the page does not cite the verdicts")
	}
	if nothing := "Which pattern for internal tools?"; strings.Contains(page, nothing) || strings.Contains(text, nothing) {
		t.Error("it advises on what was not judged")
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
