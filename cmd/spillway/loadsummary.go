package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/load/loadgen"
)

// loadSummary is what load prints.
type loadSummary struct {
	Schema         string            `json:"schema"`
	Target         string            `json:"target"`
	Offered        uint64            `json:"offered"`
	Aborted        uint64            `json:"aborted"`
	Elapsed        float64           `json:"elapsed_seconds"`
	Goodput        float64           `json:"goodput"` // ok a second
	Outcomes       []loadOutcome     `json:"outcomes"`
	Causes         []loadCause       `json:"causes,omitempty"`
	Phases         []loadPhase       `json:"phases,omitempty"`
	Classes        []loadClass       `json:"classes,omitempty"`
	Lag            *latencySummary   `json:"send_lag_ms,omitempty"`
	Generator      generatorCost     `json:"generator,omitzero"`
	BytesSent      uint64            `json:"bytes_sent"`
	BytesReceived  uint64            `json:"bytes_received"`
	Invalid        string            `json:"invalid,omitempty"` // why the run is not the load that was asked for
	GeneratorBound bool              `json:"generator_bound"`
	Why            string            `json:"why,omitempty"`
	FirstError     string            `json:"first_error,omitempty"`
	Partial        bool              `json:"partial"`
	Expectations   []loadExpectation `json:"expectations,omitempty"`

	missed  int // expectations
	picture []latencyBucket
}

type loadClass struct {
	Class    string        `json:"class"`
	Goodput  float64       `json:"goodput"`
	Outcomes []loadOutcome `json:"outcomes"`
}

type loadOutcome struct {
	Kind    string          `json:"kind"`
	Count   uint64          `json:"count"`
	Rate    float64         `json:"per_second"`
	Latency *latencySummary `json:"latency_ms,omitempty"` // nil: there was none
	Buckets []latencyBucket `json:"histogram,omitempty"`
}

// latencySummary is in milliseconds.
type latencySummary struct {
	Min  float64 `json:"min"`
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99.9"`
	Max  float64 `json:"max"`
}

type loadExpectation struct {
	Expect   string `json:"expect"`
	Measured string `json:"measured"`
	Kept     bool   `json:"kept"`
	Void     bool   `json:"void,omitempty"` // the run is invalid and says nothing about it
}

// milliseconds is nil without a value.
func milliseconds(h *histogram.Histogram) *latencySummary {
	if h.Count() == 0 {
		return nil
	}
	ms := func(ns int64) float64 { return float64(ns) / 1e6 }
	return &latencySummary{
		Min: ms(h.Min()), Mean: h.Mean() / 1e6, P50: ms(h.Quantile(0.5)), P90: ms(h.Quantile(0.9)), P95: ms(h.Quantile(0.95)),
		P99: ms(h.Quantile(0.99)), P999: ms(h.Quantile(0.999)), Max: ms(h.Max()),
	}
}

func summarize(url string, m measured, expectations []loadgen.Expectation) loadSummary {
	r := m.result
	s := loadSummary{
		Schema: "spillway/load/v1", Target: url, Offered: r.Offered, Aborted: r.Aborted,
		Elapsed: r.Elapsed.Seconds(), Goodput: r.Goodput(), Lag: milliseconds(&r.Lag),
		GeneratorBound: r.GeneratorBound, Why: r.Why, Partial: r.Partial,
		Generator: m.cost, BytesSent: m.sent, BytesReceived: m.received,
	}
	if m.firstError != nil {
		s.FirstError = m.firstError.Error()
	}
	s.Outcomes = summarizeOutcomes(r.Outcomes[:], r.Elapsed)
	s.Causes, s.Phases, s.picture = summarizeCauses(r.Causes), summarizePhases(r.Phases), coarse(&r.Outcomes[loadgen.OK].Latency)
	for i := range r.Classes {
		c := &r.Classes[i]
		s.Classes = append(s.Classes, loadClass{c.Name, perSecond(c.Outcomes[loadgen.OK].Count, r.Elapsed), summarizeOutcomes(c.Outcomes[:], r.Elapsed)})
	}
	s.Invalid = r.Void()
	for _, e := range expectations {
		kept, measured := e.Check(r)
		if !kept {
			s.missed++
		}
		void := s.Invalid != ""
		s.Expectations = append(s.Expectations, loadExpectation{e.String(), measured, kept && !void, void})
	}
	return s
}

func summarizeOutcomes(parts []loadgen.OutcomeResult, elapsed time.Duration) (outcomes []loadOutcome) {
	for o := range parts {
		n := parts[o].Count
		outcomes = append(outcomes, loadOutcome{loadgen.Outcome(o).String(), n, perSecond(n, elapsed), milliseconds(&parts[o].Latency), buckets(&parts[o].Latency, fineSteps)})
	}
	return outcomes
}

func perSecond(n uint64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

func (s loadSummary) write(w io.Writer, format string) error {
	switch format {
	case "json":
		return writeJSON(w, s)
	case "prometheus":
		s.expose(w)
	default:
		s.print(w)
	}
	return nil
}

func (s loadSummary) print(w io.Writer) {
	fmt.Fprintf(w, "%s\n%d requests in %.1f s, goodput %.1f/s\n\n", s.Target, s.Offered, s.Elapsed, s.Goodput)
	fmt.Fprintf(w, "%-9s %9s %10s  %8s %8s %8s %8s %8s %8s %8s %8s  (ms)\n", "", "count", "per second", "min", "mean", "p50", "p90", "p95", "p99", "p99.9", "max")
	for _, o := range s.Outcomes {
		o.print(w)
	}
	for _, c := range s.Classes {
		fmt.Fprintf(w, "\n%s: goodput %.1f/s\n", c.Class, c.Goodput)
		for _, o := range c.Outcomes {
			if o.Count > 0 {
				o.print(w)
			}
		}
	}
	if len(s.picture) > 0 {
		fmt.Fprintln(w, "\nlatencies of ok (ms):")
		picture(w, s.picture)
	}
	s.printCauses(w)
	s.printPhases(w)
	fmt.Fprintln(w)
	if s.Lag != nil {
		fmt.Fprintf(w, "send lag: p50 %.2f ms, p99 %.2f ms, max %.2f ms\n", s.Lag.P50, s.Lag.P99, s.Lag.Max)
	}
	if cost := s.Generator.String(); cost != "" {
		fmt.Fprintf(w, "generator: %s\n", cost)
	}
	if s.BytesSent+s.BytesReceived > 0 {
		fmt.Fprintf(w, "bytes: %s sent, %s received\n", mebibytes(s.BytesSent), mebibytes(s.BytesReceived))
	}
	if s.Invalid != "" {
		fmt.Fprintf(w, "INVALID: %s\n", s.Invalid)
	}
	if s.GeneratorBound && s.Why != s.Invalid {
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
		if e.Void {
			verdict = "void: the run is invalid"
		}
		fmt.Fprintf(w, "expected %s: measured %s, %s\n", e.Expect, e.Measured, verdict)
	}
}

func (o loadOutcome) print(w io.Writer) {
	l := o.Latency
	if l == nil {
		fmt.Fprintf(w, "%-9s %9d\n", o.Kind, o.Count)
		return
	}
	fmt.Fprintf(w, "%-9s %9d %10.1f  %8.2f %8.2f %8.2f %8.2f %8.2f %8.2f %8.2f %8.2f\n", o.Kind, o.Count, o.Rate, l.Min, l.Mean, l.P50, l.P90, l.P95, l.P99, l.P999, l.Max)
}

func mebibytes(n uint64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
