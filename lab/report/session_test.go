package report

import (
	"slices"
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
	runs[1].Killed = "memory cap" // which is a result
	s := newSession(ledger.Family{}, results.Results{}, append(runs, twin, failed))
	c := s.Setups[0].loads[0].cells[0]
	if got := c.stat(rate("ok")); got.median() != 20 || len(got) != 3 || len(s.Failed()) != 1 || len(s.Killed()) != 1 {
		t.Errorf("median %v of %d runs, failed %q, killed %q", got.median(), len(got), s.Failed(), s.Killed())
	}
}

// Known names come first, and numbers in the others count as numbers.
func TestNamesComeInReadingOrder(t *testing.T) {
	for _, c := range []struct{ known, want []string }{
		{knownSetups, []string{"published", "real", "zzz"}},
		{knownLoads, []string{"low", "high", "sustained", "1→2", "1→100", "1→1000", "2→2", "64→2", "odd"}},
		{knownPatterns, []string{"naive", "workerpool", "limiter", "Serial", "ants", "fixed 2", "fixed 32", "fixed 128"}},
	} {
		got := slices.Clone(c.want)
		slices.Reverse(got)
		if slices.SortFunc(got, byRank(c.known)); !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestASessionIsDoneAgainWithItsSeedIntoANewFolder(t *testing.T) {
	want := []string{"spillway", "lab", "H", "--repeats", "7", "--seed", "3"}
	for _, args := range [][]string{
		{"spillway", "lab", "H", "--out", "results", "--repeats", "7"},
		{"spillway", "lab", "H", "--seed=9", "--repeats", "7", "--out=results"},
		{"spillway", "lab", "H", "--repeats", "7", "--seed", "3"},
	} {
		if got := again(args, 3); !slices.Equal(got, want) {
			t.Errorf("%q: %q", args, got)
		}
	}
	if got := again(nil, 3); got != nil {
		t.Errorf("without a command: %q", got)
	}
}
