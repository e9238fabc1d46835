package loadgen

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spillway-go/spillway/histogram"
)

// Expectation is a bound that a result must keep, such as p99<200ms. Make one
// with [ParseExpectation].
type Expectation struct {
	text    string
	class   string // empty: all requests
	measure measure
	outcome Outcome // outcome that the latency or share is of
	stat    int     // index in stats, for a latency or the lag
	op      string
	limit   float64 // nanoseconds, answers per second, or percent
}

type measure uint8

const (
	ofLatency measure = iota
	ofLag
	ofShare
	ofGoodput
)

// stats are the figures of a histogram that can be bounded.
var stats = []struct {
	name string
	of   func(*histogram.Histogram) float64
}{
	{"p50", atQuantile(0.50)},
	{"p90", atQuantile(0.90)},
	{"p95", atQuantile(0.95)},
	{"p99", atQuantile(0.99)},
	{"p99.9", atQuantile(0.999)},
	{"mean", (*histogram.Histogram).Mean},
	{"min", func(h *histogram.Histogram) float64 { return float64(h.Min()) }},
	{"max", func(h *histogram.Histogram) float64 { return float64(h.Max()) }},
}

func atQuantile(q float64) func(*histogram.Histogram) float64 {
	return func(h *histogram.Histogram) float64 { return float64(h.Quantile(q)) }
}

// ParseExpectation reads a bound of one of these forms, with <, <=, > or >=:
//
//	p99<200ms           latency of the ok answers: p50 p90 p95 p99 p99.9 mean min max
//	rejected.p99<5ms    the same of another outcome: rejected. error. timeout.
//	goodput>=500        ok answers per second
//	error<1%            share of an outcome: ok rejected error timeout
//	lag.p99<2ms         the send lag: the generator's own lateness
//	critical:p99<50ms   any of these but the lag, of a class of requests
//
// Spaces around the parts are allowed. Quantiles are as exact as package
// histogram: within 0.4 %.
func ParseExpectation(s string) (Expectation, error) {
	fail := func(format string, args ...any) (Expectation, error) {
		return Expectation{}, fmt.Errorf("loadgen: expectation %q: "+format, append([]any{s}, args...)...)
	}
	i := strings.IndexAny(s, "<>")
	if i < 0 {
		return fail("no comparison: want <, <=, > or >= as in p99<200ms, goodput>=500 or error<1%%")
	}
	e := Expectation{text: strings.TrimSpace(s), op: s[i : i+1]}
	name, limit := strings.TrimSpace(s[:i]), s[i+1:]
	if rest, ok := strings.CutPrefix(limit, "="); ok {
		e.op, limit = e.op+"=", rest
	}
	if colon := strings.LastIndexByte(name, ':'); colon >= 0 {
		e.class, name = strings.TrimSpace(name[:colon]), strings.TrimSpace(name[colon+1:])
		if e.class == "" {
			return fail("no class before the colon: want one as in critical:p99<50ms")
		}
	}
	if !e.parseMetric(name) {
		return fail("no metric %q: want p50, p90, p95, p99, p99.9, mean, min or max, also of another outcome as in rejected.p99 or of the send lag as in lag.p99; goodput; or ok, rejected, error or timeout", name)
	}
	if e.class != "" && e.measure == ofLag {
		return fail("the send lag is not known by class")
	}
	if err := e.parseLimit(strings.TrimSpace(limit)); err != nil {
		return fail("%v", err)
	}
	return e, nil
}

func (e *Expectation) parseMetric(name string) bool {
	if name == "goodput" {
		e.measure = ofGoodput
		return true
	}
	if stat, ok := strings.CutPrefix(name, "lag."); ok {
		e.measure, name = ofLag, stat
	} else if prefix, rest, dotted := strings.Cut(name, "."); slices.Contains(outcomeNames[:], prefix) {
		e.outcome = Outcome(slices.Index(outcomeNames[:], prefix))
		if !dotted {
			e.measure = ofShare
			return true
		}
		name = rest
	}
	for i, s := range stats {
		if s.name == name {
			e.stat = i
			return true
		}
	}
	return false
}

func (e *Expectation) parseLimit(s string) error {
	if e.measure == ofLatency || e.measure == ofLag {
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 {
			return fmt.Errorf("limit %q: want a time such as 200ms or 1.5s", s)
		}
		e.limit = float64(d)
		return nil
	}
	unit, most, want := "%", 100.0, errors.New("want a percentage from 0% to 100%, such as 1%")
	if e.measure == ofGoodput {
		unit, most, want = "", math.MaxFloat64, errors.New("want answers per second, such as 500")
	}
	number, ok := strings.CutSuffix(s, unit)
	limit, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(limit >= 0 && limit <= most) {
		return fmt.Errorf("limit %q: %w", s, want)
	}
	e.limit = limit
	return nil
}

// String returns the text that ParseExpectation read.
func (e Expectation) String() string { return e.text }

// Class returns the class of requests that the bound applies to; empty for all requests.
func (e Expectation) Class() string { return e.class }

// Check reports whether r keeps the bound, and the measured value as text. Without a measured value
// the bound is not kept: a missing answer is not a fast answer.
func (e Expectation) Check(r *Result) (ok bool, measured string) {
	parts := &r.Outcomes
	if e.class != "" {
		i := slices.IndexFunc(r.Classes, func(c ClassResult) bool { return c.Name == e.class })
		if i < 0 {
			return false, fmt.Sprintf("no class %s", e.class)
		}
		parts = &r.Classes[i].Outcomes
	}
	var value float64
	switch e.measure {
	case ofGoodput:
		value = perSecond(parts[OK].Count, r.Elapsed)
		measured = strconv.FormatFloat(value, 'f', 1, 64) + "/s"
	case ofShare:
		value = 100 * share(parts, e.outcome)
		if math.IsNaN(value) {
			return false, "no answers"
		}
		measured = strconv.FormatFloat(value, 'f', 2, 64) + "%"
	default:
		h, missing := &parts[e.outcome].Latency, fmt.Sprintf("no %v answers", e.outcome)
		if e.measure == ofLag {
			h, missing = &r.Lag, "no requests"
		}
		if h.Count() == 0 {
			return false, missing
		}
		value = stats[e.stat].of(h)
		measured = round(time.Duration(value)).String()
	}
	switch e.op {
	case "<":
		ok = value < e.limit
	case "<=":
		ok = value <= e.limit
	case ">":
		ok = value > e.limit
	case ">=":
		ok = value >= e.limit
	}
	return ok, measured
}
