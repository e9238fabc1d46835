package report

import (
	"fmt"
	"html"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// together is a session of n experiments, the last of which is a sweep.
func together(n int) ([]ledger.Family, results.Session, map[string][]results.Run) {
	start := time.Date(2026, 3, 14, 9, 0, 0, 0, time.UTC)
	of := results.Session{Schema: results.SessionSchema, LeftOut: []results.LeftOut{{Experiment: "Z", Why: "there was no time for it."}}, Started: start, Ended: start.Add(14 * time.Minute), Revision: "0123456789ab", Command: []string{"spillway", "lab"}, Seed: 7}
	runs, families := map[string][]results.Run{}, []ledger.Family{{ID: "overload", Title: "ten times too much"}}
	for i := range n - 1 {
		id := fmt.Sprint("A", i)
		res, r := fake(3)
		res.Experiment = id
		for j := range res.Claims {
			res.Claims[j].ID = id + "-" + res.Claims[j].ID
		}
		of.Machine = res.Machine
		of.Parts, runs[id] = append(of.Parts, res), r
		families = append(families, ledger.Family{ID: id, Title: "experiment number " + id})
	}
	res, r := sweep(3)
	of.Parts, runs["overload"] = append(of.Parts, res), r
	return families, of, runs
}

func TestASessionIsOnePage(t *testing.T) {
	page, err := sessionPage(together(3))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`aria-label="Verdicts: 6 hold, 4 fail, 4 inconclusive, 2 need other hardware, of all"`,
		`aria-label="Goals of our own: 2 hold, 2 fail, of all"`,
		`<td>4.41x (4.32–4.52)</td><td>4–5x</td><td>4.29x</td><td class="spread"><svg class="chart small-interval"`, "experiment number A1", "ten times too much",
		`<a href="A1/report.html">`, "Z was left out: there was no time for it.<", "in 14m0s", "0123456789ab", "Good/s, patient API",
	} {
		if !strings.Contains(html.UnescapeString(page), want) {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestALargeSessionStaysSmall(t *testing.T) {
	soak.WithoutRace(t)
	families, of, runs := together(10)
	text, err := sessionPage(families, of, runs)
	if err != nil || len(text) >= pageLimit {
		t.Errorf("a page of %d bytes, %v", len(text), err)
	}
}
