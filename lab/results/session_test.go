package results_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/spillway-go/spillway/lab/results"
)

func TestASessionComesBackAsItWasWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	s := results.Session{
		Schema: results.SessionSchema, Seed: 3, Size: "whole", Experiments: []string{"H", "G"},
		Parts:   []results.Results{{Schema: results.Schema, Experiment: "H", Judged: []int{40}, Claims: []results.Claim{{ID: "H1", Verdict: results.Holds}}}},
		LeftOut: []results.LeftOut{{Experiment: "G", Why: "no time"}},
		Advice:  []results.Advice{{Question: "q?", Verdict: "supported", Cites: []results.Cite{{Claim: "H1", Verdict: "holds"}}}},
	}
	if err := results.WriteSession(dir, s); err != nil {
		t.Fatal(err)
	}
	if got, err := results.ReadSession(dir); err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, s)
	}
}

func TestWhatIsNoSessionIsNotReadAsOne(t *testing.T) {
	for _, content := range []string{"", "{}", `{"schema": "` + results.Schema + `"}`, `{"schema": 3}`} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, results.ResultsFile), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := results.ReadSession(dir); !errors.Is(err, results.ErrNoSession) {
			t.Errorf("%q: %v", content, err)
		}
	}
	if _, err := results.ReadSession(t.TempDir()); !errors.Is(err, results.ErrNoSession) {
		t.Errorf("an empty folder: %v", err)
	}
}

func TestTheDecidingAnswerIsTheFirstWithTheVerdict(t *testing.T) {
	answer := func(part string, v results.Verdict, beside bool) results.Answer {
		return results.Answer{Part: part, Verdict: v, Beside: beside}
	}
	c := results.Claim{Verdict: results.Fails, Answers: []results.Answer{
		answer("a", results.Fails, true), answer("b", results.Holds, false), answer("c", results.Fails, false), answer("d", results.Fails, false),
	}}
	if a, ok := c.Deciding(); !ok || a.Part != "c" {
		t.Errorf("%+v, %v", a, ok)
	}
	if p := c.Part("b"); p.Verdict != results.Holds || len(p.Answers) != 1 {
		t.Errorf("a part: %+v", p)
	}
	if p := c.Part("a"); p.Verdict != results.Inconclusive {
		t.Errorf("a part that only stands beside: %+v", p)
	}
	c.Verdict = results.Inconclusive
	if a, _ := c.Deciding(); a.Part != "b" {
		t.Errorf("%+v", a)
	}
	if _, ok := (results.Claim{}).Deciding(); ok {
		t.Error("an answer of none")
	}
}

func TestFiguresInWords(t *testing.T) {
	for want, a := range map[string]results.Answer{
		"4.46x (4.38–4.54)":    {Measured: 4.46, Low: 4.38, High: 4.54, Unit: "x", Repeats: 5},
		"2,124 req/s":          {Measured: 2124, Low: 2124, High: 2124, Unit: "req/s", Repeats: 5},
		"−83 ns (−90 to 1.50)": {Measured: -83, Low: -90, High: 1.5, Unit: "ns", Repeats: 5},
		"3":                    {Measured: 3, Low: math.NaN(), High: math.NaN(), Repeats: 2},
		"":                     {Measured: math.NaN(), Repeats: 5},
	} {
		if got := a.Figure(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for want, published := range map[string][]float64{"": nil, "4.29x": {4.29}, "4–5x": {5, 4}} {
		if got := (results.Answer{Unit: "x", Published: published}).Said(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
