package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spillway-go/spillway/load/capacity"
	"github.com/spillway-go/spillway/load/loadgen"
)

type capacityCmd struct {
	URL string `arg:"" help:"The service, such as http://localhost:8080/api/v1/patients/P000042."`

	SLO     string        `name:"slo" default:"p99=200ms,errors=0.1%" help:"What its answers must keep: p50, p90, p99, p99.9 with a time, errors, rejected with a percentage; errors and rejected are 1% unless said."`
	MaxRate rate          `default:"10000" placeholder:"N" help:"Never offer more than N requests a second."`
	Time    time.Duration `default:"90s" help:"How long the search may take; with more it is more exact."`
	Traffic rate          `placeholder:"N" help:"Also say how many replicas N requests a second need."`
	Poisson bool          `help:"Random gaps between requests, as independent users make them, instead of even ones. The knee is lower then, and less exact."`
	Seed    uint64        `default:"1" help:"Of the gaps of --poisson."`
	Timeout time.Duration `short:"t" help:"How long one request may take; unless given 2s, or four times the longest latency of the SLO if that is more."`

	requestFlags `embed:""`

	HTML string `name:"html" placeholder:"FILE" help:"Also draw the result as a page that opens in any browser."`
	JSON bool   `name:"json" help:"Print the result as JSON on standard output; progress stays on standard error."`
}

// Help teaches.
func (capacityCmd) Help() string {
	return `Finds the knee: the highest rate of requests, started by schedule however slow the answers are, at which the answers keep the SLO. It begins with 10 a second and doubles until the SLO breaks, which is believed only if it breaks twice; then it narrows the interval down to 3 %, and asks the knee to keep the SLO once more for longer. After every overload it waits, at a low rate, until latency is back. A rate at which requests pile up so fast that the SLO would break within a minute is above the knee, whatever the latency was so far.

From the knee follow the concurrency, the queue and, with --traffic, the replicas that it recommends, each with its sum. The service needs none of our code. Refusals (429, 503) are missing from the goodput and are in no latency. What looks like a rate limit, a queue without bound, or a generator that could not send more is named.

It overloads the service, on purpose: do not point it at one that others use.

Examples, the first with the service of "spillway serve", which wants a token:
  export SPILLWAY_CAPACITY_HEADER="Authorization: Bearer $(spillway token)"
  spillway capacity http://localhost:8080/api/v1/patients/P000042
  spillway capacity --slo p50=20ms,p99=150ms,errors=0% --traffic 3000 --html capacity.html http://localhost:8080/
  spillway capacity --max-rate 500 --time 3m --json http://localhost:8080/ > capacity.json

Exit codes: 0 found, or kept up to --max-rate; 1 the SLO was not kept at any load, or the machine of this command ran out of files or ports; 2 bad input or no server at the address; 130 Ctrl-C, after the partial curve was printed.`
}

func (c *capacityCmd) Run(env *environment) error {
	slo, err := capacity.ParseSLO(c.SLO)
	if err != nil {
		return badInput(err)
	}
	if err := canHold(c.HTML); err != nil {
		return badInput(err)
	}
	request, err := c.config(env.stdin)
	if err != nil {
		return badInput(err)
	}
	request.URL = c.URL
	target, err := reach(env.ctx, request)
	if err != nil {
		return badInput(err)
	}
	defer target.Close()
	shown := time.Time{}
	result, err := capacity.Run(env.ctx, capacity.Config{
		Target: target, SLO: slo, MaxRate: float64(c.MaxRate), Time: c.Time, Timeout: c.Timeout, Random: c.Poisson, Seed: c.Seed, Traffic: float64(c.Traffic),
		Progress: func(p capacity.Probe, s loadgen.Snapshot) {
			if time.Since(shown) < 200*time.Millisecond {
				return
			}
			shown = time.Now()
			env.status(fmt.Sprintf("%s: %.4g/s for %v · %d sent, %d in flight", p.Purpose, p.Rate, p.For.Round(100*time.Millisecond), s.Sent, s.InFlight))
		},
		Done: func(p capacity.Point) {
			env.status("")
			verdict := "kept"
			if len(p.Broken) > 0 {
				verdict = "broken: " + strings.Join(p.Broken, "; ")
			}
			fmt.Fprintf(env.stderr, "%-7s %8.1f/s  %s\n", p.Purpose, p.Rate, verdict)
		},
	})
	if err != nil {
		return badInput(err)
	}
	env.status("")
	result.Target = withoutPassword(c.URL)
	if c.JSON {
		if err := writeJSON(env.stdout, result); err != nil {
			return err
		}
	} else {
		result.Text(env.stdout)
		if err := target.FirstError(); err != nil {
			fmt.Fprintln(env.stdout, "\nFirst error:", err)
		}
	}
	page := func() (string, error) { return result.Page("spillway " + strings.Join(env.args, " ")) }
	if err := writePage(env, c.HTML, page); err != nil {
		return err
	}
	switch {
	case result.Ending == capacity.Interrupted:
		return errInterrupted
	case result.Void != "":
		return fmt.Errorf("the search is invalid: %s", result.Void)
	case !result.Found():
		return fmt.Errorf("no rate kept the SLO %s", result.SLO)
	}
	return nil
}
