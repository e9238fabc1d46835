package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/spillway-go/spillway/internal/pages"
	"github.com/spillway-go/spillway/lab/advice"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

var update = flag.Bool("update", false, "renew the table of experiments in CONTRIBUTING.md")

// published is the ledger: every id has a verdict under its own name.
var published = []string{
	"H1", "H2", "H3", "H4", "H5", "H6", "H7", "H8", "H9", "H10", "H11", "H12", "H13", "H14", "H15", "H16",
	"G1", "G2", "G3", "G4", "G5", "G6", "G7", "G8", "G9", "G10", "G11", "G12",
	"B1", "B2", "B3", "B4", "B5", "B6", "B7", "B8",
	"F1", "F2", "F3", "F4", "F5",
	"R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9",
}

// One sentence cannot say what follows from each of several parts: advice about bounds of work that computes
// once gave a reason that the parts of its own claim refuted.
func TestAdviceRestsOnParts(t *testing.T) {
	parts := map[string]bool{}
	for _, e := range experiments {
		for _, c := range e.Claims {
			deciding := slices.DeleteFunc(slices.Clone(c.Parts), func(p ledger.Part) bool { return p.Beside })
			if len(deciding) == 1 || c.Any {
				parts[c.ID] = true
			}
			for _, p := range deciding {
				parts[c.ID+"/"+p.ID] = true
			}
		}
	}
	for _, r := range advice.Rules {
		for _, b := range r.Rests {
			if !parts[b.Claim] {
				t.Errorf("%s rests on %s, which is neither a part nor a claim with one", r.Question, b.Claim)
			}
		}
	}
}

// leans matches the second half of a sentence.
var leans = regexp.MustCompile(`^(and|nor|or|but|with at|at no more)\b`)

func TestEveryClaimOfTheLedgerHasOneRow(t *testing.T) {
	rows := map[string]int{}
	for _, e := range experiments {
		for _, c := range e.Claims {
			rows[c.ID]++
			if rows[c.ID] > 1 {
				t.Errorf("%s has two rows", c.ID)
			}
			if c.Goal == slices.Contains(published, c.ID) {
				t.Errorf("%s: a claim of the ledger is no goal of ours, and the other way round", c.ID)
			}
			if c.Title == "" || strings.HasSuffix(c.Title, ".") || !c.Goal && c.Published == "" {
				t.Errorf("%s: title %q, published %q", c.ID, c.Title, c.Published)
			}
			for _, p := range c.Parts {
				if p.Subject == "" || p.Cases == nil || len(c.Parts) > 1 && p.ID == "" {
					t.Errorf("%s/%s: a part without a name, a subject or set-ups", c.ID, p.ID)
				}
				if len(c.Parts) > 1 && (p.Title == "" || leans.MatchString(p.Title)) {
					t.Errorf("%s/%s: %q does not stand without the title before it", c.ID, p.ID, p.Title)
				}
			}
		}
	}
	for _, id := range published {
		if rows[id] != 1 {
			t.Errorf("%s has no row", id)
		}
	}
	pages.Says(t, "README.md", fmt.Sprintf("It judges %d published claims", len(published)))
}

func TestEveryExperimentHasAPlanForEachSize(t *testing.T) {
	for _, e := range experiments {
		if e.Title == "" || e.Help == "" || len(e.Method) == 0 {
			t.Errorf("%s: title %q, help %q, %d notes on method", e.ID, e.Title, e.Help, len(e.Method))
		}
		for _, size := range []string{"", "quick", "full"} {
			if got := e.Takes(size); !strings.HasSuffix(got, "s") && !strings.HasSuffix(got, "min") {
				t.Errorf("%s %s takes %s", e.ID, size, got)
			}
		}
	}
}

func newParser(t *testing.T) (*kong.Kong, *commandLine) {
	t.Helper()
	cli := &commandLine{Lab: newLabCmd(nil)}
	parser, err := kong.New(cli, kong.Resolvers(experiment.Sizes()))
	if err != nil {
		t.Fatal(err)
	}
	environmentVariables(parser.Model.Node, "SPILLWAY")
	return parser, cli
}

func TestEveryFlagHasHelpAndAnEnvironmentVariable(t *testing.T) {
	parser, _ := newParser(t)
	flags := 0
	var walk func(*kong.Node)
	walk = func(n *kong.Node) {
		for _, f := range n.Flags {
			if f.Name == "help" {
				continue
			}
			flags++
			if f.Help == "" || !strings.HasSuffix(f.Help, ".") || len(f.Envs) != 1 || !strings.HasPrefix(f.Envs[0], "SPILLWAY_") {
				t.Errorf("%s --%s: help %q, environment %v", n.FullPath(), f.Name, f.Help, f.Envs)
			}
		}
		for _, c := range n.Children {
			walk(c)
		}
	}
	walk(parser.Model.Node)
	if flags < 30 {
		t.Errorf("only %d flags seen", flags)
	}
}

func TestHelpTeaches(t *testing.T) {
	all := [][]string{{}, {"lab"}, {"lab", "all"}, {"lab", "judge"}, {"demo"}, {"lab", "selftest"}, {"load"}}
	for _, e := range experiments {
		all = append(all, []string{"lab", e.ID})
	}
	for _, args := range all {
		code, stdout, stderr := command(t, append(args, "--help")...)
		if code != 0 || stderr != "" || !strings.Contains(stdout, "spillway") {
			t.Errorf("%v: exit code %d, stderr %q", args, code, stderr)
		}
		if !strings.Contains(stdout, "\n    spillway ") || strings.Contains(stdout, "${") {
			t.Errorf("%v: no example, or a variable is left, in\n%s", args, stdout)
		}
	}
}

func TestFlagBeforeEnvironmentBeforeFileBeforeSize(t *testing.T) {
	type config struct {
		A int `default:"1" quick:"2" full:"3"`
		B int `default:"1" quick:"2" full:"3"`
		C int `default:"1" quick:"2" full:"3"`
		D int `default:"1" quick:"2" full:"3"`
		E int `default:"1"`
	}
	cli := struct {
		experiment.Single `embed:""`
		Config            config     `embed:""`
		File              configFlag `name:"config"`
	}{}
	file := filepath.Join(t.TempDir(), "c.json")
	if err := os.WriteFile(file, []byte(`{"a": 7, "b": 7, "c": 7}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("X_A", "8")
	t.Setenv("X_B", "8")
	parser, err := kong.New(&cli, kong.Resolvers(experiment.Sizes()))
	if err != nil {
		t.Fatal(err)
	}
	environmentVariables(parser.Model.Node, "X")
	if _, err := parser.Parse([]string{"--config", file, "--quick", "--a", "9"}); err != nil {
		t.Fatal(err)
	}
	if want := (config{9, 8, 7, 2, 1}); cli.Config != want {
		t.Errorf("got %v, want %v from flag, environment, file, size, default", cli.Config, want)
	}
}

func TestTheTableOfExperimentsInCONTRIBUTING(t *testing.T) {
	path := filepath.Join("..", "..", "CONTRIBUTING.md")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const from, to = "<!-- experiments -->\n", "<!-- /experiments -->"
	before, rest, ok1 := strings.Cut(string(data), from)
	_, after, ok2 := strings.Cut(rest, to)
	if !ok1 || !ok2 {
		t.Fatal("the marks around the table are gone")
	}
	var b strings.Builder
	b.WriteString("| experiment | folder | what it asks |\n|---|---|---|\n")
	for _, e := range experiments {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", e.ID, e.Folder, e.Title)
	}
	want := before + from + b.String() + to + after
	if want == string(data) {
		return
	}
	if !*update {
		t.Fatalf("renew it with: go test ./cmd/spillway -run CONTRIBUTING -args -update")
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestJudgingAgainSaysWhatChanged(t *testing.T) {
	before := []results.Claim{{ID: "A", Verdict: results.Holds}, {ID: "B", Verdict: results.Fails}, {ID: "C", Verdict: results.Fails}}
	after := []results.Claim{{ID: "A", Verdict: results.Inconclusive}, {ID: "B", Verdict: results.Fails}, {ID: "D", Verdict: results.Holds}}
	want := []string{"A was holds and is inconclusive now", "D was not judged and is holds now", "C was fails and is no claim any more"}
	if got := changes(before, after); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
	if got := changes(nil, after); len(got) > 0 {
		t.Errorf("the first time: %q", got)
	}
}
