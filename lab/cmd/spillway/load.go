package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/loadgen"
)

type loadCmd struct {
	URL string `arg:"" help:"Where to send the load, such as http://localhost:8080/api/v1/patients/P000042."`

	Rate     float64       `group:"How much (--rate or --clients)" placeholder:"N" help:"Open loop: start N requests a second by schedule, however slow the answers are. Latency counts from the intended start."`
	Poisson  bool          `group:"How much (--rate or --clients)" help:"With --rate: random gaps, as independent users make them, instead of even ones."`
	Clients  int           `group:"How much (--rate or --clients)" placeholder:"N" help:"Closed loop: N clients that each wait for an answer before they send again."`
	Duration time.Duration `group:"How much (--rate or --clients)" placeholder:"D" help:"How long to send; 10s unless --requests says when to stop."`
	Requests uint64        `group:"How much (--rate or --clients)" placeholder:"N" help:"How many requests to send in total."`

	Method   string        `short:"X" group:"The request" help:"Method; GET, or POST when there is a body."`
	Header   []string      `short:"H" sep:"none" group:"The request" placeholder:"\"NAME: VALUE\"" help:"A header; may be repeated."`
	Body     string        `short:"d" group:"The request" placeholder:"TEXT|@FILE" help:"Body of every request; @FILE reads it from a file."`
	Timeout  time.Duration `group:"The request" default:"30s" help:"How long one request may take."`
	Insecure bool          `group:"The request" help:"Accept any TLS certificate, as for a server of your own."`

	Seed        uint64   `default:"1" help:"Of the gaps of --poisson."`
	MaxInFlight int      `default:"10000" help:"Most requests of an open loop that may be unanswered at one time."`
	Expect      []string `short:"e" sep:"none" placeholder:"BOUND" help:"Exit with 1 unless it is kept, such as 'p99<200ms', 'goodput>=500', 'error<1%' or 'rejected.p99<5ms'; may be repeated."`
	JSON        bool     `name:"json" help:"Print the result as JSON on standard output; progress stays on standard error."`
}

func (loadCmd) Help() string {
	return `Outcomes are never mixed: ok, rejected (429 and 503), error (everything else) and timeout each have their own count and latencies, and goodput counts ok only.

Use --rate to learn what users feel: they do not wait for each other, so a server that stalls for a second meets a second's worth of requests. Use --clients for callers that do wait, such as workers of a queue. The send lag is this command's own lateness; when it is too large to trust the latencies the summary says so.

Examples:
  spillway load --rate 200 --duration 30s http://localhost:8080/api/v1/patients/P000042
  spillway load --clients 50 --requests 10000 -e 'p99<200ms' -e 'error<1%' http://localhost:8080/livez
  spillway load --rate 50 -X POST -H 'Content-Type: application/json' -d '{"ids":["P000001","P000002"]}' http://localhost:8080/api/v1/patients:batch

Exit codes: 0 every expectation was kept; 1 one was not; 2 bad input or no server at the address; 130 Ctrl-C, after what was measured so far was printed.`
}

func (c *loadCmd) Run(env *environment) error {
	cfg, target, expectations, err := c.config()
	if err != nil {
		return badInput(err)
	}
	defer target.Close()
	reach, cancel := context.WithTimeout(env.ctx, 5*time.Second)
	defer cancel()
	if err := target.Reach(reach); err != nil {
		return badInput(err)
	}
	if env.width > 0 {
		cfg.Interval = 500 * time.Millisecond
	}
	cfg.Progress = func(s loadgen.Snapshot) { showLoad(env, s) }
	result, err := loadgen.Run(env.ctx, cfg)
	if err != nil {
		return badInput(err)
	}
	env.status("")
	summary := summarize(c.URL, result, target.FirstError(), expectations)
	if !c.JSON {
		summary.print(env.stdout)
	} else if err := writeJSON(env.stdout, summary); err != nil {
		return err
	}
	switch {
	case env.ctx.Err() != nil:
		return errInterrupted
	case summary.missed > 0:
		return fmt.Errorf("%d of %d expectations not kept", summary.missed, len(summary.Expectations))
	}
	return nil
}

// config checks everything that can be checked before anything is sent.
func (c *loadCmd) config() (cfg loadgen.Config, target *loadgen.HTTP, expectations []loadgen.Expectation, err error) {
	if err := c.check(); err != nil {
		return cfg, nil, nil, err
	}
	if c.Duration == 0 && c.Requests == 0 {
		c.Duration = 10 * time.Second
	}
	cfg.Timeout, cfg.MaxInFlight = c.Timeout, c.MaxInFlight
	if c.Clients > 0 {
		cfg.Closed = &loadgen.Closed{Clients: c.Clients, Requests: c.Requests, Duration: c.Duration}
	} else {
		if c.Requests > 0 { // half a gap more than the last one needs
			c.Duration = time.Duration((float64(c.Requests) - 0.5) / c.Rate * float64(time.Second))
		}
		cfg.Open = loadgen.Constant(c.Rate, c.Duration)
		if c.Poisson {
			cfg.Open = loadgen.Poisson(c.Rate, c.Duration, c.Seed)
		}
	}
	for _, text := range c.Expect {
		e, err := loadgen.ParseExpectation(text)
		if err != nil {
			return cfg, nil, nil, err
		}
		expectations = append(expectations, e)
	}
	target, err = c.target()
	cfg.Target = target
	return cfg, target, expectations, err
}

func (c *loadCmd) check() error {
	switch {
	case c.Rate < 0 || c.Clients < 0 || c.Duration < 0 || c.Timeout < 0 || c.MaxInFlight < 1:
		return errors.New("--rate, --clients, --duration and --timeout cannot be negative, and --max-in-flight must be at least 1")
	case (c.Rate > 0) == (c.Clients > 0):
		return errors.New("say how much load: either --rate N (requests a second) or --clients N")
	case c.Poisson && c.Rate == 0:
		return errors.New("--poisson goes with --rate")
	case c.Rate > 0 && c.Requests > 0 && c.Duration > 0:
		return errors.New("with --rate, say either --duration or --requests: one follows from the other")
	}
	return nil
}

func (c *loadCmd) target() (*loadgen.HTTP, error) {
	h := loadgen.HTTPConfig{URL: c.URL, Method: strings.ToUpper(c.Method), Header: http.Header{}}
	for _, line := range c.Header {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("header %q: want NAME: VALUE", line)
		}
		h.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	if file, ok := strings.CutPrefix(c.Body, "@"); ok {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("the body: %w", err)
		}
		h.Body = data
	} else if c.Body != "" {
		h.Body = []byte(c.Body)
	}
	if c.Insecure {
		h.TLS = &tls.Config{InsecureSkipVerify: true}
	}
	return loadgen.NewHTTP(h)
}

func showLoad(env *environment, s loadgen.Snapshot) {
	o := s.Outcomes
	line := fmt.Sprintf("%v · %d sent, %d in flight · ok %d, rejected %d, error %d, timeout %d",
		s.Elapsed.Round(100*time.Millisecond), s.Sent, s.InFlight, o[loadgen.OK], o[loadgen.Rejected], o[loadgen.Error], o[loadgen.Timeout])
	env.status(line)
	if whole := s.Elapsed.Round(time.Second); env.width == 0 && whole > 0 && whole%(5*time.Second) == 0 {
		fmt.Fprintln(env.stderr, line)
	}
}

// loadSummary is what load prints.
type loadSummary struct {
	Schema         string            `json:"schema"`
	Target         string            `json:"target"`
	Offered        uint64            `json:"offered"`
	Aborted        uint64            `json:"aborted"`
	Elapsed        float64           `json:"elapsed_seconds"`
	Goodput        float64           `json:"goodput"` // ok a second
	Outcomes       []loadOutcome     `json:"outcomes"`
	Lag            latencySummary    `json:"send_lag_ms"`
	GeneratorBound bool              `json:"generator_bound"`
	Why            string            `json:"why,omitempty"`
	FirstError     string            `json:"first_error,omitempty"`
	Partial        bool              `json:"partial"`
	Expectations   []loadExpectation `json:"expectations,omitempty"`

	missed int // expectations
}

type loadOutcome struct {
	Kind    string         `json:"kind"`
	Count   uint64         `json:"count"`
	Rate    float64        `json:"per_second"`
	Latency latencySummary `json:"latency_ms"`
}

// latencySummary is in milliseconds.
type latencySummary struct {
	Min  float64 `json:"min"`
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99.9"`
	Max  float64 `json:"max"`
}

type loadExpectation struct {
	Expect   string `json:"expect"`
	Measured string `json:"measured"`
	Kept     bool   `json:"kept"`
}

func milliseconds(h *histogram.Histogram) latencySummary {
	ms := func(ns int64) float64 { return float64(ns) / 1e6 }
	return latencySummary{
		Min: ms(h.Min()), Mean: h.Mean() / 1e6, P50: ms(h.Quantile(0.5)), P95: ms(h.Quantile(0.95)),
		P99: ms(h.Quantile(0.99)), P999: ms(h.Quantile(0.999)), Max: ms(h.Max()),
	}
}

func summarize(url string, r *loadgen.Result, firstError error, expectations []loadgen.Expectation) loadSummary {
	s := loadSummary{
		Schema: "spillway/load/v1", Target: url, Offered: r.Offered, Aborted: r.Aborted,
		Elapsed: r.Elapsed.Seconds(), Goodput: r.Goodput(), Lag: milliseconds(&r.Lag),
		GeneratorBound: r.GeneratorBound, Why: r.Why, Partial: r.Partial,
	}
	if firstError != nil {
		s.FirstError = firstError.Error()
	}
	for _, o := range loadgen.Outcomes() {
		out := &r.Outcomes[o]
		s.Outcomes = append(s.Outcomes, loadOutcome{o.String(), out.Count, r.Rate(o), milliseconds(&out.Latency)})
	}
	for _, e := range expectations {
		kept, measured := e.Check(r)
		if !kept {
			s.missed++
		}
		s.Expectations = append(s.Expectations, loadExpectation{e.String(), measured, kept})
	}
	return s
}

func (s loadSummary) print(w io.Writer) {
	fmt.Fprintf(w, "%s\n%d requests in %.1f s, goodput %.1f/s\n\n", s.Target, s.Offered, s.Elapsed, s.Goodput)
	fmt.Fprintf(w, "%-9s %9s %10s  %9s %9s %9s %9s %9s %9s  (ms)\n", "", "count", "per second", "min", "mean", "p50", "p95", "p99", "max")
	for _, o := range s.Outcomes {
		if o.Count == 0 {
			fmt.Fprintf(w, "%-9s %9d\n", o.Kind, 0)
			continue
		}
		l := o.Latency
		fmt.Fprintf(w, "%-9s %9d %10.1f  %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f\n", o.Kind, o.Count, o.Rate, l.Min, l.Mean, l.P50, l.P95, l.P99, l.Max)
	}
	fmt.Fprintf(w, "\nsend lag: p50 %.2f ms, p99 %.2f ms, max %.2f ms\n", s.Lag.P50, s.Lag.P99, s.Lag.Max)
	if s.GeneratorBound {
		fmt.Fprintf(w, "do not trust the latencies: %s\n", s.Why)
	}
	if s.FirstError != "" {
		fmt.Fprintf(w, "first error: %s\n", s.FirstError)
	}
	if s.Partial {
		fmt.Fprintf(w, "partial: interrupted; %d requests were cut off and are in no outcome\n", s.Aborted)
	}
	for _, e := range s.Expectations {
		verdict := map[bool]string{true: "kept", false: "NOT kept"}[e.Kept]
		fmt.Fprintf(w, "expected %s: measured %s, %s\n", e.Expect, e.Measured, verdict)
	}
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
