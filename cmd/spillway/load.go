package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/load"
	"github.com/spillway-go/spillway/load/loadgen"
	"github.com/spillway-go/spillway/load/usage"
)

type loadCmd struct {
	URL string `arg:"" optional:"" help:"Where to send the load, such as http://localhost:8080/api/v1/patients/P000042. Without it, targets are read from standard input."`

	Rate     rate          `short:"q" aliases:"rps,qps,R" group:"How much (one of --rate, --profile, --trace and --clients)" placeholder:"N" help:"Open loop: start N requests a second by schedule, however slow the answers are; 20/s and 1200/m are the same rate. Latency counts from the intended start."`
	Profile  string        `group:"How much (one of --rate, --profile, --trace and --clients)" placeholder:"LEGS" help:"Open loop with a changing rate: RATE:TIME or FROM-TO:TIME, with commas, such as 100:10s,100-500:30s,0:5s. With --duration it is repeated until then."`
	Trace    string        `group:"How much (one of --rate, --profile, --trace and --clients)" placeholder:"FILE" help:"Open loop: start requests when those of a recording did, a line each: seconds, or a time such as 1.5s, alone or as the first column of a CSV file."`
	Clients  int           `short:"c" aliases:"connections,concurrency,vus" group:"How much (one of --rate, --profile, --trace and --clients)" placeholder:"N" help:"Closed loop: N clients that each wait for an answer before they send again."`
	Poisson  bool          `group:"How much (one of --rate, --profile, --trace and --clients)" help:"With --rate or --profile: random gaps, as independent users make them, instead of even ones."`
	Duration time.Duration `short:"z" group:"How much (one of --rate, --profile, --trace and --clients)" placeholder:"D" help:"How long to send; 10s unless --requests, --profile or --trace says when to stop."`
	Requests uint64        `short:"n" aliases:"iterations" group:"How much (one of --rate, --profile, --trace and --clients)" placeholder:"N" help:"With --rate or --clients: how many requests to send in total."`

	requestFlags `embed:""`

	Data       string        `group:"The request" placeholder:"FILE" help:"Rows for placeholders such as {{.id}} in the URL, in headers and in the body: .csv with a line of names, or .jsonl with an object a line. {{n}} is the number of the request, without --data, too."`
	DataRandom bool          `group:"The request" help:"Draw the rows of --data at random, by --seed, instead of in turn."`
	Mix        string        `group:"The request" placeholder:"FILE" help:"Several requests by weight, from a JSON file; their outcomes are reported by class, too."`
	Timeout    time.Duration `short:"t" group:"The request" default:"30s" help:"How long one request may take."`
	HTTP2      bool          `name:"http2" aliases:"h2,h2c" group:"The request" help:"Speak HTTP/2 instead of HTTP/1.1; with http:// at once, which the server has to permit (h2c)."`

	Format   string        `short:"o" aliases:"output-format" group:"The result" enum:"text,json,prometheus" default:"text" help:"Of the result on standard output: text, json or prometheus, for a push gateway or a text file collector."`
	JSON     bool          `name:"json" group:"The result" help:"The same as --format json; progress stays on standard error."`
	CSV      string        `name:"csv" group:"The result" placeholder:"FILE" help:"Also write what happened in each interval, a line each, while it happens."`
	Interval time.Duration `group:"The result" default:"1s" help:"Of the live view and of the lines of --csv."`
	Expect   []string      `short:"e" sep:"none" group:"The result" placeholder:"BOUND" help:"Exit with 1 unless it is kept, such as 'p99<200ms', 'goodput>=500', 'error<1%', 'rejected.p99<5ms', 'lag.p99<2ms' or, with --mix, 'critical:p99<50ms'; may be repeated."`

	Seed        uint64 `default:"1" help:"Of everything random: gaps, rows, and the order of a mix."`
	MaxInFlight int    `default:"10000" help:"Most requests of an open loop that may be unanswered at one time."`
}

func (loadCmd) Help() string {
	return `Outcomes are never mixed: ok, rejected (429 and 503), error (everything else) and timeout each have their own count and latencies, and goodput counts ok only.

Below them are the latencies of ok as a picture, each status and error with its count (429 and 503 by the header Spillway-Reason, errors without numbers and addresses), and how long looking up the name, connecting, the TLS handshake and the first byte took. With --json, every outcome has its histogram.

Use --rate to learn what users feel: they do not wait for each other, so a server that stalls for a second meets a second's worth of requests. Use --clients for callers that do wait, such as workers of a queue. The send lag is this command's own lateness; when it is too large to trust the latencies the summary says so. It also says what a request cost this command itself, in processor time and memory; spillway lab load compares that with other generators.

The examples ask the service of "spillway serve", which wants a token. In the environment it is not seen by other users of the machine, as -H on a command line is; that header is sent beside those of -H:
  export SPILLWAY_LOAD_HEADER="Authorization: Bearer $(spillway token)"

Examples:
  spillway load --rate 200 --duration 30s http://localhost:8080/api/v1/patients/P000042
  spillway load --clients 50 --requests 10000 -e 'p99<200ms' -e 'error<1%' http://localhost:8080/livez
  spillway load --rate 50 -X POST -H 'Content-Type: application/json' -d '{"ids":["P000001","P000002"]}' http://localhost:8080/api/v1/patients:batch

Lines of hey, wrk, vegeta and k6, and how they are written here:
  hey -z 30s -c 50 -q 10 URL                               spillway load -z 30s -q 500 URL
  wrk -t2 -c50 -d30s --latency URL                         spillway load -c 50 -z 30s URL
  echo GET URL | vegeta attack -rate 20/s -duration 30s    echo GET URL | spillway load -rate 20/s -duration 30s
  k6 run --vus 50 --duration 30s script.js                 spillway load --vus 50 --duration 30s URL
Here -q is the rate of all requests together, and hey's is that of each of its workers. -d is the body, and a redirect is followed only with --follow. A flag that only they have is an error, which for the usual ones says what to write; docs/lab/load.md has more such lines.

A certificate of the client, a private authority, a proxy, a Unix socket:
  spillway load -c 10 --cacert ca.pem --cert client.pem --key client.key https://localhost:8443/
  spillway load -c 10 --proxy http://localhost:3128 http://service.internal/
  spillway load -c 10 --unix /run/service.sock http://localhost/

Many targets, in turn: lines such as those of vegeta on standard input, and no URL. Headers of a target follow its line, then @ and a file with the body. Placeholders are not filled in.
  printf 'GET http://localhost:8080/a\nAccept: text/html\n\nPOST http://localhost:8080/b\n@body.json\n' | spillway load --rate 20/s

A changing rate: a ramp; steps; a burst; two seconds on and eight off, for a minute; a recording:
  spillway load --profile 0-500:60s URL
  spillway load --profile 100:20s,200:20s,400:20s URL
  spillway load --profile 100:10s,2000:1s,100:20s --poisson URL
  spillway load --profile 500:2s,0:8s --duration 1m URL
  spillway load --trace access.csv URL

Requests that differ: patients.csv has a line "id,name" and then a patient a line.
  spillway load --rate 200 --data patients.csv 'http://localhost:8080/api/v1/patients/{{.id}}?trace={{n}}'

Several requests, by class: mix.json holds a list. Every field may be left out; the flags say what is missing, and the class is the priority unless it is named. A priority is sent as Spillway-Priority, which admissionhttp heeds from callers that it trusts.
  [{"weight": 1, "priority": "critical", "path": "/api/v1/patients/{{.id}}"},
   {"weight": 4, "class": "batch", "priority": "low", "path": "/api/v1/patients:batch", "method": "POST", "headers": {"Content-Type": "application/json"}, "body": "{\"ids\":[\"{{.id}}\"]}"}]
  spillway load --rate 500 --data patients.csv --mix mix.json -e 'critical:p99<50ms' -e 'critical:ok>99%' http://localhost:8080

For other tools: the result as JSON, for Prometheus, and a line for each second in a CSV file:
  spillway load --rate 200 --json URL > result.json
  spillway load --rate 200 --format prometheus --csv seconds.csv URL > result.prom

Exit codes: 0 every expectation was kept; 1 one was not, or the run is invalid: the machine of this command ran out of files or ports; 2 bad input or no server at the address; 130 Ctrl-C, after what was measured so far was printed.`
}

func (c *loadCmd) Run(env *environment) (err error) {
	plan, err := c.plan(env)
	if err != nil {
		return badInput(err)
	}
	defer plan.Close()
	if err := plan.Reach(env.ctx); err != nil {
		return badInput(err)
	}
	live := &liveView{env: env}
	if c.CSV != "" {
		_, stat := os.Stat(c.CSV)
		f, failed := os.Create(c.CSV)
		if failed != nil {
			return badInput(fmt.Errorf("--csv: %w", failed))
		}
		live.lines = &sink{Writer: f}
		writeIntervalNames(live.lines)
		defer func() {
			err = errors.Join(err, live.lines.failed(), f.Close())
			if isBadInput(err) && errors.Is(stat, fs.ErrNotExist) {
				err = errors.Join(err, os.Remove(c.CSV))
			}
		}()
	}
	measured, err := plan.send(env.ctx, live.show)
	if err != nil {
		return err
	}
	env.status("")
	summary := summarize(plan.name, measured, plan.expectations)
	if err := summary.write(env.stdout, c.Format); err != nil {
		return err
	}
	switch {
	case env.ctx.Err() != nil:
		return errInterrupted
	case summary.Invalid != "":
		return fmt.Errorf("the run is invalid: %s", summary.Invalid)
	case summary.missed > 0:
		return fmt.Errorf("%d of %d expectations not kept", summary.missed, len(summary.Expectations))
	}
	return nil
}

// measured is what came of a load.
type measured struct {
	result         *loadgen.Result
	cost           generatorCost
	sent, received uint64 // bytes
	firstError     error
}

// send sends the load.
func (p *prepared) send(ctx context.Context, progress func(loadgen.Snapshot)) (m measured, err error) {
	p.Run.Progress = progress
	before := usage.CPU()
	if m.result, err = loadgen.Run(ctx, p.Run); err != nil {
		return m, badInput(err)
	}
	m.cost = costOf(usage.CPU()-before, m.result.Offered)
	m.sent, m.received = p.Traffic()
	m.firstError = p.FirstError()
	return m, nil
}

// plan checks everything that can be checked before anything is sent.
func (c *loadCmd) plan(env *environment) (p prepared, err error) {
	spec, err := c.spec(env.stdin)
	if err != nil {
		return p, err
	}
	p.name = withoutPassword(c.URL)
	if n := len(spec.Targets); n > 0 {
		p.name = withoutPassword(spec.Targets[0].URL)
		if n > 1 {
			p.name = fmt.Sprintf("%d targets, the first of which is %s", n, p.name)
		}
	}
	if p.Plan, err = spec.Plan(); err != nil {
		return p, err
	}
	if p.expectations, err = c.expectations(p.Classes); err != nil {
		p.Close()
	}
	return p, err
}

// prepared is a load of which everything was checked.
type prepared struct {
	*load.Plan
	name         string // of what is loaded
	expectations []loadgen.Expectation
}

func (c *loadCmd) expectations(classes []string) (all []loadgen.Expectation, err error) {
	for _, text := range c.Expect {
		e, err := loadgen.ParseExpectation(text)
		if err != nil {
			return nil, err
		}
		if name := e.Class(); name != "" && !slices.Contains(classes, name) {
			return nil, fmt.Errorf("expectation %q: no class %q: want one of --mix%s", text, name, colonList(classes))
		}
		all = append(all, e)
	}
	return all, nil
}

func colonList(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return ": " + strings.Join(names, ", ")
}
