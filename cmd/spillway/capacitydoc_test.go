package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/cmd/spillway/internal/simulate"
	"github.com/spillway-go/spillway/internal/pages"
	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/load/numbers"
)

const capacityPage = "docs/operate/capacity.md"

// Every command in docs/operate/capacity.md is one that this program takes, and every scenario in it is
// built in.
func TestTheCommandsInCapacity(t *testing.T) {
	commands := regexp.MustCompile("(?m)(?:`|^ {4})spillway ([^`\n>]+)").FindAllStringSubmatch(pages.Text(t, capacityPage), -1)
	if len(commands) < 8 {
		t.Fatalf("there are %d commands", len(commands))
	}
	simulated := map[string]bool{}
	for _, c := range commands {
		args := strings.Fields(c[1])
		parser, cli := newParser(t)
		ctx, err := parser.Parse(args)
		if err != nil {
			t.Errorf("spillway %s: %v", c[1], err)
			continue
		}
		name := string(cli.Sim.Scenario)
		if !strings.HasPrefix(ctx.Command(), "sim") || name == "" || strings.HasSuffix(name, ".json") {
			continue
		}
		simulated[name] = true
		source, err := simulate.Source(name)
		if err == nil {
			_, err = simulate.Parse(source)
		}
		if err != nil {
			t.Errorf("spillway %s: %v", c[1], err)
		}
	}
	for _, name := range simulate.Builtin() {
		source, _ := simulate.Source(name)
		if strings.Contains(string(source), `"replicas": 1`) && name != "shop" && !simulated[name] {
			t.Errorf("%s has no command for the fleet %s", capacityPage, name)
		}
	}
}

// The figures of the page are what its commands give. What takes longer than a moment is checked by
// the soak.
func TestTheFiguresInCapacity(t *testing.T) {
	soak.WithoutRace(t)
	breaksFirst(t, false)
	twenty := simulated(t, "fleet-storm --replicas 20")
	budgetless, budgeted := twenty[:4], twenty[4:]
	for i, without := range budgetless {
		if got, want := inTheStorm(budgeted[i]), inTheStorm(without); got != want {
			t.Errorf("%s: %s, and %s without a budget: the page says that a budget changes nothing", budgeted[i].Policy, got, want)
		}
	}
}

// breaksFirst checks the rows of the first table: those that take a moment, or the others.
func breaksFirst(t *testing.T, long bool) {
	t.Helper()
	rows := regexp.MustCompile("(?m)\\| `spillway sim ([^`]+)` \\|$").FindAllStringSubmatch(pages.Text(t, capacityPage), -1)
	if len(rows) < 7 {
		t.Fatalf("there are %d rows", len(rows))
	}
	for _, row := range rows {
		name, load, other := strings.Cut(row[1], " --load ")
		if strings.HasPrefix(name, "rolling-restart") != long {
			continue
		}
		if other {
			load, _, _ = strings.Cut(load, " ")
		} else {
			source, err := simulate.Source(name)
			if err != nil {
				t.Fatal(err)
			}
			load = regexp.MustCompile(`"poisson": "([^"]+)"`).FindStringSubmatch(string(source))[1]
		}
		of := simulated(t, row[1])
		pages.Says(t, capacityPage, fmt.Sprintf("| %s | %s | %s | `spillway sim %s` |", load, inTheTrouble(of[0]), inTheTrouble(of[1]), row[1]))
	}
}

// simulated are the outcomes of a command, by policy.
func simulated(t *testing.T, args string) []simulate.Outcome {
	t.Helper()
	code, stdout, stderr := command(t, slices.Concat([]string{"sim", "--json"}, strings.Fields(args))...)
	var result simulate.Result
	if err := json.Unmarshal([]byte(stdout), &result); code != 0 || err != nil {
		t.Fatalf("spillway sim %s: exit code %d, %v, %s", args, code, err, stderr)
	}
	return result.Outcomes
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

func inTheTrouble(o simulate.Outcome) string {
	return fmt.Sprintf("%s, %s, %s ms", percent(o.Answered.During), percent(o.Answered.End), numbers.Format(*o.Total.P99))
}

func inTheStorm(o simulate.Outcome) string {
	return fmt.Sprintf("%s | %s | %s", percent(o.Answered.During), percent(o.Answered.End), percent(*o.Total.Served))
}
