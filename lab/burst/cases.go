package burst

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

var (
	finished = counted("jobs finished", func(r *results.Run) float64 { return float64(r.Of("ok").Count) })
	rate     = counted("jobs a second", func(r *results.Run) float64 { return r.Rate("ok") })
	refused  = counted("share refused", func(r *results.Run) float64 { return 100 * r.Share("rejected") })
	refusal  = timed("p99 of a refusal", "rejected", func(h *histogram.Histogram) float64 { return float64(h.Quantile(0.99)) })
	latency  = timed("mean latency", "ok", (*histogram.Histogram).Mean)
	killed   = counted("whether it was killed", func(r *results.Run) float64 { return map[bool]float64{true: 100}[r.Killed != ""] })
	alone    = counted("time of a job alone", func(r *results.Run) float64 { return param(r, "work_ms") })
	allowed  = counted("workers and generators", func(r *results.Run) float64 {
		return unless(param(r, "max_workers") == 0, param(r, "max_workers")+param(r, "generators"))
	})
	workShare = ledger.Figure{Name: "work's share of the processor time", Key: "work_percent", OfKilled: true}
	sendShare = ledger.Figure{Name: "share of the processors that submissions took", Key: "submit_percent", OfKilled: true}
)

// counted is a figure from the counters that a contestant shares with the lab, so that
// one that was killed has it too. Of what was counted, 0 is a figure.
func counted(name string, value func(*results.Run) float64) ledger.Figure {
	return ledger.Figure{Name: name, OfKilled: true, Value: func(r *results.Run) float64 { return unless(r.Offered == 0, value(r)) }}
}

// timed is a figure of the times of one kind of outcome, in milliseconds.
func timed(name, kind string, value func(*histogram.Histogram) float64) ledger.Figure {
	return counted(name, func(r *results.Run) float64 { h := r.Of(kind).Latency; return unless(h.Count() == 0, value(h)/1e6) })
}

// unless is x, or NaN if it is missing.
func unless(missing bool, x float64) float64 {
	if missing {
		return math.NaN()
	}
	return x
}

// param is a parameter of a run, or NaN.
func param(r *results.Run, name string) float64 {
	x, ok := r.Params[name].(float64)
	return unless(!ok, x)
}

// comparison is what a part asks of each contestant.
type comparison struct {
	deciding []string // nil: the published shape, and every other bounded one that was run stands beside it
	against  string   // the other side, if there is one
	of       func(ledger.Key) ledger.Term
	open     func(e *ledger.Evidence, name string) string // why it cannot be decided; may be nil
}

func of(f ledger.Figure) func(ledger.Key) ledger.Term {
	return func(k ledger.Key) ledger.Term { return ledger.Of(k, f) }
}

func naiveOver(f ledger.Figure) func(ledger.Key) ledger.Term {
	return func(k ledger.Key) ledger.Term { return ledger.Of(at(Naive), f).Over(ledger.Of(k, f)) }
}

func overPublished(f ledger.Figure) func(ledger.Key) ledger.Term {
	return func(k ledger.Key) ledger.Term { return ledger.Of(k, f).Over(ledger.Of(at(Published), f)) }
}

func (c comparison) cases(e *ledger.Evidence) (out []ledger.Case) {
	for _, name := range Names() {
		decides := slices.Contains(c.deciding, name) || c.deciding == nil && name == Published
		if !decides && (c.deciding != nil || name == Naive || !e.Has(at(name))) {
			continue
		}
		k := ledger.Case{Setup: name, Beside: !decides, Value: c.of(at(name)), Open: short(e, name, c.against)}
		if k.Open == "" {
			k.Remark = happened(e, name, c.against)
			if c.open != nil {
				k.Open = c.open(e, name)
			}
		}
		out = append(out, k)
	}
	return out
}

// short says that one of the bursts was too short to answer for the published one.
func short(e *ledger.Evidence, names ...string) string {
	for _, name := range names {
		if runs := e.Runs(at(name)); len(runs) > 0 && param(runs[0], "burst_seconds") < publishedTime.Seconds() {
			return fmt.Sprintf("%s was offered %v s of the burst, in which pools have not grown and buffers are new: it takes the published %v (--full).",
				name, param(runs[0], "burst_seconds"), publishedTime)
		}
	}
	return ""
}

// unequal says that naive and the contestant were not offered the same load.
func unequal(e *ledger.Evidence, name string) string {
	both := slices.Concat(e.Runs(at(Naive)), e.Runs(at(name)))
	if slices.ContainsFunc(both, func(r *results.Run) bool { return r.Params["generator"] != "" }) {
		return fmt.Sprintf("Naive and %s were not offered the same load: it takes more processors, or a --rate that is offered to both.", name)
	}
	return ""
}

// cutShort says that naive's figure is not that of its whole burst.
func cutShort(e *ledger.Evidence, _ string) string {
	if slices.ContainsFunc(e.Runs(at(Naive)), func(r *results.Run) bool { return r.Killed != "" }) {
		return "Naive was killed, so that its memory at the end and the latency of what it left are not known: it takes more memory, and a --memory-cap that lets it finish."
	}
	return ""
}

// happened says when each contestant was first killed, or not offered the rate.
func happened(e *ledger.Evidence, names ...string) string {
	var said []string
	for _, name := range names {
		for _, r := range e.Runs(at(name)) {
			why, _ := r.Params["generator"].(string)
			if r.Killed != "" {
				why = strings.TrimSuffix(fmt.Sprintf("%s, with %d of %d jobs done; %s", r.Killed, r.Of("ok").Count, r.Offered, why), "; ")
			}
			if why != "" {
				said = append(said, fmt.Sprintf("In repeat %d %s was %s.", r.Repeat+1, name, why))
				break
			}
		}
	}
	return strings.Join(said, " ")
}
