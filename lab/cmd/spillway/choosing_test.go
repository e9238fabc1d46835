package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/pages"
	"github.com/spillway-go/spillway/lab/advice"
	"github.com/spillway-go/spillway/lab/results"
)

var verdicts = flag.String("verdicts", "", "with -update: take the verdicts of docs/lab/choosing.md from this folder, which holds a folder for each experiment")

func TestAdviceRestsOnClaimsThatThereAre(t *testing.T) {
	for _, r := range advice.Rules {
		for _, b := range r.Rests {
			if !slices.Contains(published, b.Claim) && !isClaim(b.Claim) {
				t.Errorf("%s: there is no claim %s", r.Question, b.Claim)
			}
		}
	}
}

func isClaim(id string) bool {
	for _, e := range experiments {
		for _, c := range e.Claims {
			if c.ID == id {
				return true
			}
			for _, p := range c.Parts {
				if p.ID != "" && c.ID+"/"+p.ID == id {
					return true
				}
			}
		}
	}
	return false
}

// The table in docs/lab/choosing.md is made of the rules and of the verdicts in choosing.json.
func TestTheTableInChoosing(t *testing.T) {
	docs := filepath.Join("..", "..", "..", "docs", "lab")
	kept := filepath.Join(docs, "choosing.json")
	if *update && *verdicts != "" {
		if err := keepVerdicts(*verdicts, kept); err != nil {
			t.Fatal(err)
		}
	}
	var parts []results.Results
	data, err := os.ReadFile(kept)
	if err == nil {
		err = json.Unmarshal(data, &parts)
	}
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(docs, "choosing.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	session := parts[0]
	pages.Says(t, "docs/lab/choosing.md", fmt.Sprintf("%s, %s, %s, %s/%s, %s.", session.Started.Format(time.DateOnly), session.Revision,
		session.Machine.CPU, session.Machine.OS, session.Machine.Arch, session.Machine.Go))
	const from, to = "<!-- advice -->\n", "<!-- /advice -->"
	before, rest, ok1 := strings.Cut(string(text), from)
	_, after, ok2 := strings.Cut(rest, to)
	if !ok1 || !ok2 {
		t.Fatal("the marks around the table are gone")
	}
	want := before + from + choosing(parts) + to + after
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("renew it with: go test ./lab/cmd/spillway -run Choosing -args -update")
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// choosing is the table: what is advised, and what became of it.
func choosing(parts []results.Results) string {
	var b strings.Builder
	b.WriteString("| question | advice | on two processors |\n|---|---|---|\n")
	for i, a := range advice.Of(parts) {
		var cited []string
		for _, c := range a.Cites {
			figure := ""
			if c.Figure != "" {
				figure = " " + c.Figure
			}
			cited = append(cited, fmt.Sprintf("%s %s%s", c.Claim, c.Verdict, figure))
		}
		who := "ours"
		if a.Source != "" {
			who = a.Source
		}
		found := a.Verdict
		if len(cited) > 0 {
			found += ": " + strings.Join(cited, "; ")
		}
		said := advice.Rules[i].Says
		if a.Verdict == advice.Contradicted {
			_, instead, _ := strings.Cut(a.Text, " That did not hold here. ")
			said += " **Here not:** " + instead
		}
		fmt.Fprintf(&b, "| %s | %s *(%s)* | %s |\n", a.Question, said, who, found)
	}
	return b.String()
}

// keepVerdicts stores what the advice cites of the experiments in dir, and no more.
func keepVerdicts(dir, path string) error {
	var parts []results.Results
	for _, e := range experiments {
		res, runs, err := results.Read(filepath.Join(dir, e.ID))
		if err != nil {
			continue // it was not run
		}
		kept := results.Results{Schema: res.Schema, Experiment: res.Experiment, Started: res.Started, Machine: res.Machine, Revision: res.Revision, Seed: res.Seed, Repeats: res.Repeats}
		for _, c := range e.Judge(runs, res) {
			if !slices.ContainsFunc(advice.Rules, func(r advice.Rule) bool {
				return slices.ContainsFunc(r.Rests, func(b advice.Basis) bool { return b.Claim == c.ID || strings.HasPrefix(b.Claim, c.ID+"/") })
			}) {
				continue
			}
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
	data, err := json.MarshalIndent(parts, "", " ")
	if err != nil {
		return err
	}
	return results.WriteFile(path, append(data, '\n'))
}
