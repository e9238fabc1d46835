package main

import (
	"fmt"
	"io"
	"strings"
)

// expose writes the summary in Prometheus' text format. What there is not is left out.
func (s loadSummary) expose(w io.Writer) {
	gauge := func(name, help string, value float64) {
		fmt.Fprintf(w, "# HELP spillway_load_%s %s\n# TYPE spillway_load_%s gauge\nspillway_load_%s %.9g\n", name, help, name, name, value)
	}
	gauge("duration_seconds", "How long the load took.", s.Elapsed)
	gauge("goodput", "Requests answered successfully per second.", s.Goodput)
	gauge("generator_bound", "1: the generator was late, do not trust the latencies.", map[bool]float64{true: 1}[s.GeneratorBound])
	gauge("sent_bytes", "Bytes of requests.", float64(s.BytesSent))
	gauge("received_bytes", "Bytes of answers.", float64(s.BytesReceived))
	gauge("invalid", "1: the generator's machine ran out of something, this is not the load that was asked for.", map[bool]float64{true: 1}[s.Invalid != ""])

	if cost := s.Generator; cost.Micros > 0 {
		gauge("generator_cpu_seconds_per_request", "Processor time that a request cost the generator.", cost.Micros/1e6)
	}
	if cost := s.Generator; cost.PeakRSS > 0 {
		gauge("generator_peak_rss_bytes", "The most resident memory of the generator.", float64(cost.PeakRSS))
	}

	family(w, "requests_total", "counter", "Requests by outcome.")
	for _, o := range s.Outcomes {
		fmt.Fprintf(w, "spillway_load_requests_total{outcome=%q} %d\n", o.Kind, o.Count)
	}
	family(w, "latency_seconds", "summary", "Latencies by outcome.")
	for _, o := range s.Outcomes {
		exposeSummary(w, "latency_seconds", label("outcome", o.Kind), o.Latency, o.Count)
	}
	family(w, "send_lag_seconds", "summary", "How late the generator sent requests.")
	exposeSummary(w, "send_lag_seconds", "", s.Lag, s.Offered)
	if len(s.Classes) > 0 {
		family(w, "class_requests_total", "counter", "Requests by class and outcome.")
		for _, c := range s.Classes {
			for _, o := range c.Outcomes {
				fmt.Fprintf(w, "spillway_load_class_requests_total{%s,%s} %d\n", label("class", c.Class), label("outcome", o.Kind), o.Count)
			}
		}
		family(w, "class_latency_seconds", "summary", "Latencies by class and outcome.")
		for _, c := range s.Classes {
			for _, o := range c.Outcomes {
				exposeSummary(w, "class_latency_seconds", label("class", c.Class)+","+label("outcome", o.Kind), o.Latency, o.Count)
			}
		}
	}
	if len(s.Expectations) > 0 {
		family(w, "expectation_kept", "gauge", "1: the bound was kept.")
		for _, e := range s.Expectations {
			fmt.Fprintf(w, "spillway_load_expectation_kept{%s} %g\n", label("expect", e.Expect), map[bool]float64{true: 1}[e.Kept])
		}
	}
}

func family(w io.Writer, name, kind, help string) {
	fmt.Fprintf(w, "# HELP spillway_load_%s %s\n# TYPE spillway_load_%s %s\n", name, help, name, kind)
}

func exposeSummary(w io.Writer, name, labels string, l *latencySummary, count uint64) {
	if l == nil {
		return
	}
	comma, braced := "", ""
	if labels != "" {
		comma, braced = ",", "{"+labels+"}"
	}
	for _, q := range []struct {
		quantile string
		ms       float64
	}{{"0.5", l.P50}, {"0.9", l.P90}, {"0.95", l.P95}, {"0.99", l.P99}, {"0.999", l.P999}} {
		fmt.Fprintf(w, "spillway_load_%s{%s%squantile=%q} %.9g\n", name, labels, comma, q.quantile, q.ms/1e3)
	}
	fmt.Fprintf(w, "spillway_load_%s_sum%s %.9g\nspillway_load_%s_count%s %d\n", name, braced, l.Mean/1e3*float64(count), name, braced, count)
}

var inLabel = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func label(name, value string) string { return name + `="` + inLabel.Replace(value) + `"` }
