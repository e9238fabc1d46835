package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/lab/simulate"
)

// Every command in docs/operate/capacity.md is one that this program takes, and every scenario in it is
// built in.
func TestTheCommandsInCapacity(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "operate", "capacity.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile("(?m)(?:`|^ {4})spillway ([^`\n>]+)").FindAllStringSubmatch(string(text), -1)
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
			t.Errorf("docs/operate/capacity.md has no command for the fleet %s", name)
		}
	}
}
