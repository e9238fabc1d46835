package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

var verdicts = flag.String("verdicts", "", "with -update: take the verdicts of docs/lab/verdicts.md and choosing.md from this folder, which holds a folder for each experiment")

var labDocs = filepath.Join("..", "..", "docs", "lab")

// keep stores the verdicts of the folder that was named, once.
var keep = sync.OnceValue(func() error {
	if !*update || *verdicts == "" {
		return nil
	}
	return keepVerdicts(*verdicts, filepath.Join(labDocs, "verdicts.json"))
})

// keptVerdicts are those of docs/lab/verdicts.json, of which both pages are made.
func keptVerdicts(t *testing.T) (parts []results.Results) {
	t.Helper()
	err := keep()
	if err == nil {
		var data []byte
		if data, err = os.ReadFile(filepath.Join(labDocs, "verdicts.json")); err == nil {
			err = json.Unmarshal(data, &parts)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

// between compares what stands between the marks of a page in docs/lab, or renews it.
func between(t *testing.T, page, mark, want string) {
	t.Helper()
	page = filepath.Join(labDocs, page)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	from, to := "<!-- "+mark+" -->\n", "<!-- /"+mark+" -->"
	before, rest, ok1 := strings.Cut(string(text), from)
	_, after, ok2 := strings.Cut(rest, to)
	if !ok1 || !ok2 {
		t.Fatalf("the marks around the table in %s are gone", page)
	}
	if want = before + from + want + to + after; want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("renew it with: go test ./cmd/spillway -run Choosing -args -update")
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The tables in docs/lab/verdicts.md are made of the claims and of the same verdicts as the table in
// docs/lab/choosing.md.
func TestTheVerdictsBesideChoosing(t *testing.T) {
	parts := keptVerdicts(t)
	var b strings.Builder
	for _, e := range experiments {
		i := slices.IndexFunc(parts, func(res results.Results) bool { return res.Experiment == e.ID })
		var of results.Results
		if i >= 0 {
			of = parts[i]
		}
		fmt.Fprintf(&b, "\n## %s: %s\n\n%s", e.ID, e.Title, tableOf(e.Claims, of))
	}
	between(t, "verdicts.md", "verdicts", strings.TrimPrefix(b.String(), "\n"))
}

const notJudged = "not judged yet"

// tableOf is the table of the claims of an experiment, with a row for each set-up of each part.
func tableOf(claims []ledger.Claim, of results.Results) string {
	var b strings.Builder
	b.WriteString("| claim | it | part | set-up | is | figure (interval) | rule | judged |\n|---|---|---|---|---|---|---|---|\n")
	for _, c := range claims {
		kept := results.Claim{Verdict: notJudged}
		if i := slices.IndexFunc(of.Claims, func(k results.Claim) bool { return k.ID == c.ID }); i >= 0 {
			kept = of.Claims[i]
		}
		is := string(kept.Verdict)
		if is != notJudged && changed(c, kept) {
			is += "; its parts or rules have changed since"
		}
		head := fmt.Sprintf("**%s** %s%s | %s", c.ID, cellText(c.Title), map[bool]string{true: " *(goal)*"}[c.Goal], is)
		for _, p := range c.Parts {
			if p.Beside {
				continue
			}
			found := false
			for _, a := range kept.Answers {
				if a.Part != p.ID || a.Beside {
					continue
				}
				found = true
				verdict := string(a.Verdict)
				if a.Rule != p.Rule {
					verdict += ", by an older rule: " + a.Rule.Words(a.Unit)
				}
				fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", head, p.ID, cellText(a.Setup), verdict, a.Figure(), p.Rule.Words(p.Unit), judgedOn(of))
				head = " | "
			}
			if !found {
				fmt.Fprintf(&b, "| %s | %s | | %s | | %s | |\n", head, p.ID, notJudged, p.Rule.Words(p.Unit))
				head = " | "
			}
		}
	}
	return b.String()
}

// changed reports whether the claim was judged by other parts or rules than it has now.
func changed(c ledger.Claim, kept results.Claim) bool {
	for _, p := range c.Parts {
		if !p.Beside && !slices.ContainsFunc(kept.Answers, func(a results.Answer) bool { return a.Part == p.ID }) {
			return true
		}
	}
	return slices.ContainsFunc(kept.Answers, func(a results.Answer) bool {
		return !a.Beside && !slices.ContainsFunc(c.Parts, func(p ledger.Part) bool { return p.ID == a.Part && !p.Beside && p.Rule == a.Rule })
	})
}

// judgedOn is when and where the verdicts were made.
func judgedOn(of results.Results) string {
	return fmt.Sprintf("%s, %d × %s", of.Started.Format(time.DateOnly), of.Machine.CPUs, of.Machine.CPU)
}

// cellText is a text within a cell of a table.
func cellText(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

// keepVerdicts stores the verdicts of the experiments in dir, without what no page shows.
func keepVerdicts(dir, path string) error {
	var parts []results.Results
	for _, e := range experiments {
		res, runs, err := results.Read(filepath.Join(dir, e.ID))
		if err != nil {
			continue // it was not run
		}
		kept := results.Results{Schema: res.Schema, Experiment: res.Experiment, Started: res.Started, Machine: res.Machine, Revision: res.Revision, Seed: res.Seed, Repeats: res.Repeats}
		for _, c := range e.Judge(runs, res) {
			short := results.Claim{ID: c.ID, Title: c.Title, Verdict: c.Verdict}
			for _, a := range c.Answers {
				if !a.Beside {
					a.Title, a.Why, a.Sides, a.Published = "", "", nil, nil
					short.Answers = append(short.Answers, a)
				}
			}
			kept.Claims = append(kept.Claims, short)
		}
		parts = append(parts, kept)
	}
	if len(parts) == 0 {
		return fmt.Errorf("%s holds no results of an experiment", dir)
	}
	data, err := json.MarshalIndent(parts, "", " ")
	if err != nil {
		return err
	}
	return results.WriteFile(path, append(data, '\n'))
}
