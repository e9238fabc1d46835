package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/load/compare"
	"github.com/spillway-go/spillway/load/judge"
	"github.com/spillway-go/spillway/load/numbers"
)

type compareCmd struct {
	A string `arg:"" help:"A URL or a command in quotes."`
	B string `arg:"" help:"Another one."`

	Metric string `placeholder:"NAME" help:"What is compared. Of URLs: p99 (unless given), p50, mean, goodput or errors. Of commands: wall (unless given), cpu, or printed, the last word on standard output that is a number."`
	More   bool   `help:"More is better, for --metric printed."`
	Rounds int    `default:"20" help:"How many rounds, each with two blocks or runs of A and one of B, in random order. One more warms up."`
	Seed   uint64 `default:"1" help:"Of the order."`

	Rate    rate          `short:"q" aliases:"rps,qps,R" group:"Load of URLs (--rate or --clients)" placeholder:"N" help:"Open loop: start N requests a second by schedule, however slow the answers are."`
	Clients int           `short:"c" aliases:"connections,concurrency,vus" group:"Load of URLs (--rate or --clients)" placeholder:"N" help:"Closed loop: N clients that each wait for an answer before they send again."`
	Block   time.Duration `group:"Load of URLs (--rate or --clients)" default:"1s" help:"How long a block of requests to one URL is. Longer blocks lower the noise floor."`
	Timeout time.Duration `short:"t" group:"Load of URLs (--rate or --clients)" default:"30s" help:"How long one request may take."`

	requestFlags `embed:""`

	JSON bool `name:"json" help:"Print the result as JSON on standard output; progress stays on standard error."`
}

// Help teaches.
func (compareCmd) Help() string {
	return `Says whether B is better than A, or worse, or that it cannot tell yet. Both take turns and are compared within a round, so that a slow minute of the machine falls on both. A is measured twice a round: what A differs from itself is the noise floor, and a smaller difference is not believed, however often it is seen. If more rounds would settle it, it says how many.

Examples:
  spillway compare --rate 200 http://localhost:8080/livez http://localhost:8081/livez
  spillway compare --clients 20 --metric goodput --block 5s http://localhost:8080/ http://localhost:8081/
  spillway compare './sort-old < data' './sort-new < data'
  spillway compare --metric cpu 'gzip -9 < data' 'zstd -9 < data'
  spillway compare --metric printed --more './bench-old' './bench-new'

Exit codes: 0 B is better; 1 B is worse; 3 undecided, also when the machine of this command ran out of files or ports; 2 bad input, no server at an address, or a command that failed; 130 Ctrl-C, after the rounds so far were judged.`
}

func (c *compareCmd) Run(env *environment) error {
	if a, b := hostOf(c.A), hostOf(c.B); c.Unix != "" && a != b {
		return badInput(fmt.Errorf("--unix sends the requests for %s and %s to one socket: give one host and two paths, or leave --unix out", a, b))
	}
	result, err := c.measure(env)
	if err != nil {
		return badInput(err)
	}
	result.A, result.B = c.A, c.B
	if isURL(c.A) {
		result.A, result.B = withoutPassword(c.A), withoutPassword(c.B)
	}
	if !c.JSON {
		showComparison(env.stdout, result)
	} else if err := writeJSON(env.stdout, result); err != nil {
		return err
	}
	switch {
	case result.Partial:
		return errInterrupted
	case result.Verdict == compare.Worse:
		return exitCode(1)
	case result.Verdict == compare.Undecided:
		return exitCode(3)
	}
	return nil
}

// hostOf is the host of a URL.
func hostOf(s string) string {
	_, rest, _ := strings.Cut(s, "://")
	host, _, _ := strings.Cut(rest, "/")
	return host
}

func isURL(s string) bool {
	return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://")
}

func (c *compareCmd) measure(env *environment) (*compare.Result, error) {
	if c.Rounds < judge.LeastFollow || c.Rounds > 10_000 {
		return nil, fmt.Errorf("rounds is %d: want %d to 10000", c.Rounds, judge.LeastFollow)
	}
	if isURL(c.A) != isURL(c.B) {
		return nil, errors.New("one of the two is a URL: want two URLs or two commands")
	}
	metric, err := c.metric()
	if err != nil {
		return nil, err
	}
	cfg := compare.Config{Metric: metric, Rounds: c.Rounds, Seed: c.Seed, Started: func(round int, side string) {
		env.status(fmt.Sprintf("round %d of %d: %s", round, c.Rounds, side))
		if env.width == 0 && round > 0 && round%10 == 0 && side == "B" {
			fmt.Fprintf(env.stderr, "round %d of %d\n", round, c.Rounds)
		}
	}}
	late, why := 0, ""
	if isURL(c.A) {
		load := compare.Load{Rate: float64(c.Rate), Clients: c.Clients, Block: c.Block, Timeout: c.Timeout}
		if c.Block < 10*time.Millisecond || c.Timeout < 0 {
			return nil, fmt.Errorf("block is %v and timeout %v: want a block of at least 10ms and no negative timeout", c.Block, c.Timeout)
		}
		request, err := c.config(env.stdin)
		if err != nil {
			return nil, err
		}
		for _, side := range []struct {
			url     string
			measure *compare.Measure
		}{{c.A, &cfg.A}, {c.B, &cfg.B}} {
			request.URL = side.url
			target, err := reach(env.ctx, request)
			if err != nil {
				return nil, err
			}
			defer target.Close()
			if *side.measure, err = load.Blocks(target, metric, func(w string) { late, why = late+1, w }); err != nil {
				return nil, err
			}
		}
	} else {
		cfg.A, cfg.B = compare.Command(c.A, metric), compare.Command(c.B, metric)
	}
	result, err := compare.Run(env.ctx, cfg)
	env.status("")
	if err == nil && late > 0 {
		result.Remarks = append(result.Remarks, fmt.Sprintf("The generator was the bound in %d of %d blocks, so do not trust their latencies: %s", late, 3*(c.Rounds+1), why))
	}
	return result, err
}

// metric is the one that was asked for, of those that there are.
func (c *compareCmd) metric() (compare.Metric, error) {
	known := compare.CommandMetrics
	if isURL(c.A) {
		known = compare.URLMetrics
	}
	if c.Metric == "" {
		return known[0], nil
	}
	var names []string
	for _, m := range known {
		if m.Name == c.Metric {
			m.More = m.More || c.More && m.Name == "printed"
			return m, nil
		}
		names = append(names, m.Name)
	}
	return compare.Metric{}, fmt.Errorf("metric is %q: want %s", c.Metric, strings.Join(slices.Sorted(slices.Values(names)), ", "))
}

func showComparison(w io.Writer, r *compare.Result) {
	show := func(x *float64) string {
		if x == nil {
			return "–"
		}
		return strings.TrimSpace(numbers.Format(*x) + " " + r.Unit)
	}
	fmt.Fprintf(w, "%-3s %12s  %s\n%-3s %12s  %s\n", "A", show(r.MedianA), r.A, "B", show(r.MedianB), r.B)
	fmt.Fprintf(w, "median %s of %d rounds\n\n%s. %s\n", r.Metric, len(r.Rounds), strings.ToUpper(string(r.Verdict[:1]))+string(r.Verdict[1:]), r.Why)
	if r.Verdict == compare.Undecided && r.More > 0 {
		fmt.Fprintf(w, "%d more rounds should settle it: --rounds %d.\n", r.More, len(r.Rounds)+r.More)
	}
	if r.Verdict == compare.Undecided && r.More == 0 && r.Void == "" && r.Floor != nil && *r.Floor > 0 {
		fmt.Fprintln(w, "On a quieter machine A differs less from itself; of URLs, with a longer --block, too.")
	}
	for _, remark := range r.Remarks {
		fmt.Fprintln(w, remark)
	}
}
