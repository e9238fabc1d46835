package report

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
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
	of := results.Session{Schema: results.SessionSchema, LeftOut: []results.LeftOut{{Experiment: "Z", Why: "there was no time for it."}}, Started: start, Ended: start.Add(14 * time.Minute), Revision: "0123456789ab", Command: []string{"spillway", "lab"}, Seed: 7,
		Advice: []results.Advice{
			{Question: "batch jobs?", Text: "a pool with a larger queue", Source: "a write-up", Verdict: "contradicted", Cites: []results.Cite{{Claim: "A0-H2/refused", Verdict: "fails", Figure: "97.1 %"}}},
			{Question: "tools?", Text: "anything", Verdict: "not judged", Cites: []results.Cite{{Claim: "Z1", Verdict: "not judged"}}},
		}}
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
	dir := t.TempDir()
	families, of, runs := together(3)
	if err := WriteSession(dir, families, of, runs); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, results.ReportFile))
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	for _, want := range []string{
		`aria-label="Published claims: 6 hold, 4 fail, 4 inconclusive, 2 need other hardware, of all"`,
		`aria-label="Goals of our own: 2 hold, 2 fail, of all"`,
		`<a href="#claim-A0-H2">A0-H2/refused</a> fails <small>97.1 %</small>`, "Z1 not judged", "contradicted",
		`<td>4.41x</td><td>4.32 – 4.52</td><td>4–5x</td><td>4.29x</td>`, "experiment number A1", "ten times too much",
		`<a href="A1/report.html">`, "Z was left out: there was no time for it<", "in 14m0s", "0123456789ab", "Against offered load",
	} {
		if !strings.Contains(html.UnescapeString(page), want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(page, "for comparison") || strings.Contains(page, "Every run, as it was made") {
		t.Error("the page has what only the experiments' own reports have room for")
	}
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if ids[m[1]] {
			t.Errorf("two elements are called %s", m[1])
		}
		ids[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if !ids[m[1]] {
			t.Errorf("the page points to #%s, which is not there", m[1])
		}
	}
	for _, r := range loads {
		for _, m := range r.FindAllStringSubmatch(page, -1) {
			if !strings.HasPrefix(m[3], "#") && m[3] != "data:," {
				t.Errorf("%s would load %q", m[0], m[3])
			}
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

func TestASessionWithoutAnythingIsStillShown(t *testing.T) {
	for _, of := range []results.Session{{}, {Parts: []results.Results{{}, {Experiment: "X", Partial: "interrupted", Claims: []results.Claim{{ID: "X1"}}}}}} {
		if _, err := sessionPage(nil, of, nil); err != nil {
			t.Error(err)
		}
	}
}
