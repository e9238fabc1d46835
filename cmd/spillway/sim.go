package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spillway-go/spillway/cmd/spillway/internal/simulate"
	"github.com/spillway-go/spillway/lab/results"
)

type simCmd struct {
	Scenario scenarioName `arg:"" optional:"" help:"A built-in scenario, or a file with one."`

	Load     string `placeholder:"RATE" help:"Instead of the rate of the scenario, if it is a poisson one: calls a second, or a multiple of the capacity such as 0.7x."`
	Replicas int    `placeholder:"N" help:"Instead of the replicas of the scenario."`

	Out     string `placeholder:"FILE" help:"Also write the pictures: one HTML file that opens in any browser, without a network."`
	List    bool   `xor:"what" help:"List the built-in scenarios."`
	Example bool   `xor:"what" help:"Print a scenario to start from, shop unless another is named: JSON with every field explained."`
	JSON    bool   `name:"json" help:"Print the result as JSON on standard output; progress stays on standard error."`
}

// scenarioName is one that is built in, or the path of a file.
type scenarioName string

func (scenarioName) completions() []string { return simulate.Builtin() }

// Help teaches.
func (simCmd) Help() string {
	return `What would a limiter do to this service? Callers, a backend and the policy between them are simulated in virtual time: a minute takes about a second. Each policy meets the same calls. The decisions are made by the code of the live limiter; the rest is a model, which the scenario describes: when calls arrive, how much work they are, when callers leave and retry, how the backend slows down, and what happens to it. A scenario may have many replicas behind a balancer; docs/operate/capacity.md plans with them.

Examples:
  spillway sim retry-storm                         three policies in an overload that feeds itself
  spillway sim retry-storm --out storm.html        with pictures: goodput, limit, in flight and waiting over time
  spillway sim fleet-storm                         a thousand replicas, and every set of three protections: a minute
  spillway sim zone-loss --out zone.html           one of three zones is lost
  spillway sim zone-loss --load 0.7x --replicas 30 the same at another load, with fewer replicas
  spillway sim --list
  spillway sim --example > shop.json               every field, explained; edit it, then:
  spillway sim shop.json --out shop.html
  spillway sim --example burst                     a built-in scenario as a file

Exit codes: 0 simulated, whatever came of it; 1 the page could not be written; 2 bad input; 130 Ctrl-C, after what was finished was printed.`
}

func (c *simCmd) Run(env *environment) error {
	switch {
	case c.List:
		return listScenarios(env, c.JSON)
	case c.Example:
		text, err := simulate.Source(cmp.Or(string(c.Scenario), "shop"))
		if err != nil {
			return badInput(err)
		}
		_, err = env.stdout.Write(text)
		return err
	case c.Scenario == "":
		return badInput(errors.New("say which scenario: a built-in one (--list), or a file (--example prints one to start from)"))
	}
	text, err := simulate.Source(string(c.Scenario))
	if err != nil {
		return badInput(err)
	}
	scenario, err := simulate.ParseWith(text, simulate.Instead{Replicas: c.Replicas, Load: c.Load})
	if err != nil {
		return badInput(fmt.Errorf("%s: %w", c.Scenario, err))
	}
	if err := canHold(c.Out); err != nil {
		return badInput(err)
	}
	last := ""
	result, err := scenario.Run(env.ctx, func(policy string, share float64) {
		env.status(fmt.Sprintf("%s: %.0f %%", policy, 100*share))
		if env.width == 0 && policy != last {
			fmt.Fprintln(env.stderr, "simulating", policy)
		}
		last = policy
	})
	env.status("")
	if err != nil {
		return err
	}
	if c.JSON {
		err = writeJSON(env.stdout, result)
	} else {
		result.Print(env.stdout)
	}
	if err == nil {
		err = writePage(env, c.Out, result.Page)
	}
	if err == nil && result.Partial {
		err = errInterrupted
	}
	return err
}

// canHold fails if the folder of a page is missing. Without a page it is the folder here.
func canHold(path string) error {
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fmt.Errorf("the page %s: make the folder %s first", path, folder)
	}
	return nil
}

// writePage writes a page, unless its path is empty.
func writePage(env *environment, path string, page func() (string, error)) error {
	if path == "" {
		return nil
	}
	text, err := page()
	if err == nil {
		err = results.WriteFile(path, []byte(text))
	}
	if err != nil {
		return fmt.Errorf("the page was not written: %w", err)
	}
	fmt.Fprintln(env.stderr, "the page is in", path)
	return nil
}

func listScenarios(env *environment, asJSON bool) error {
	type entry struct {
		Name  string `json:"name"`
		Title string `json:"title"`
	}
	var all []entry
	for _, name := range simulate.Builtin() {
		text, err := simulate.Source(name)
		if err != nil {
			return err
		}
		s, err := simulate.Parse(text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, entry{name, s.Title})
	}
	if asJSON {
		return writeJSON(env.stdout, all)
	}
	for _, e := range all {
		fmt.Fprintf(env.stdout, "%-18s %s\n", e.Name, e.Title)
	}
	return nil
}
