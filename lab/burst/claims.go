package burst

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/judge"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

var published = []ledger.Claim{
	{
		ID: "B1", Title: "A goroutine for each job takes tens of times the memory of the pool", Any: true,
		Published: "50.86 GB vs 1.41 GB (36x); the published naive run stops itself above 12 GB",
		Note:      "The published \"peak RAM\" is what the runtime had reserved, looked at once a second. One of two is enough: ten times the memory, or more than there is.",
		Parts: []ledger.Part{
			{ID: "memory", Subject: "naive/pool peak resident memory", Unit: "x", Rule: judge.AtLeast(10), Published: []float64{36}, Spread: 0.03,
				Cases: comparison{against: Naive, of: naiveOver(ledger.PeakRSS), open: cutShort}.cases},
			{ID: "killed", Title: "A goroutine for each job needs more memory than there is, the pool does not",
				Subject: "how often naive was killed by the memory cap and the pool was not", Unit: "%", Kind: judge.Every, Rule: judge.AtLeast(100),
				Cases: comparison{against: Naive, of: func(k ledger.Key) ledger.Term { return ledger.Of(at(Naive), killed).Minus(ledger.Of(k, killed)) }}.cases},
		},
	},
	{
		ID: "B2", Title: "The bounded pool finishes 4.6 times as many jobs", Published: "4.6x",
		Note: "The published naive run sleeps 10 µs before each submission and stops itself above 12 GB, so that 4.6x compares two loads. Three times as many at equal offered load would do. It is asked the other way round, because a naive run that is killed may have finished nothing.",
		Parts: []ledger.Part{{Title: "Offered the same, naive finishes at most a third of the jobs that the pool finishes",
			Subject: "what naive finished of the pool's jobs", Unit: "%", Rule: judge.AtMost(33.3), Published: []float64{100 / 4.6}, Spread: 2,
			Cases: comparison{against: Naive, of: func(k ledger.Key) ledger.Term { return naiveOver(finished)(k).Times(100) }, open: unequal}.cases}},
	},
	{
		ID: "B3", Title: "Mean latency in the burst is an order of magnitude lower with the pool", Published: "2,063 vs 161 ms (13x)",
		Note: "The published latency starts when the job starts: the time in a queue of 100,000 is not in it. Here it starts with the submission.",
		Parts: []ledger.Part{{Subject: "naive/pool mean latency from submission", Unit: "x", Rule: judge.AtLeast(5), Published: []float64{13}, Spread: 0.1,
			Cases: comparison{against: Naive, of: naiveOver(latency), open: cutShort}.cases}},
	},
	{
		ID: "B4", Title: "Goroutines stay at the cap of the pool", Published: "104,473 vs 5,002 at a cap of 5,000",
		Note: "The published figure of the pool is the number of goroutines at the end of the run, not the peak. The runtime and the experiment have some, too: at most 50.",
		Parts: []ledger.Part{{Subject: "the peak of goroutines less the pool's workers and the generators", Kind: judge.Every, Rule: judge.AtMost(50), Published: []float64{2},
			Cases: comparison{of: func(k ledger.Key) ledger.Term { return ledger.Of(k, ledger.Goroutines).Minus(ledger.Of(k, allowed)) }}.cases}},
	},
	{
		ID: "B5", Title: "Most of the offered work is refused, at once", Published: "31 million refused by a timeout of 1 µs; no figure of how long a refusal took",
		Parts: []ledger.Part{
			{ID: "refused", Title: "Most of the offered work is refused",
				Subject: "the refused share of the offered jobs", Unit: "%", Kind: judge.Every, Rule: judge.AtLeast(50), Spread: 2, Max: 100, Cases: comparison{of: of(refused)}.cases},
			{ID: "prompt", Title: "A refusal comes at once",
				Subject: "p99 of a refusal", Unit: "ms", Kind: judge.Every, Rule: judge.Below(1), Spread: 0.1, Cases: comparison{of: of(refusal)}.cases},
		},
	},
	{
		ID: "B6", Title: "Naive spends its processor time on collection and switching, hardly on work; the pool spends it on work", Published: "\"near-zero\" under naive; no figure",
		Note: "Work is allocating and touching the buffer, less what the collector made the job do for it; measured by the processor clock of the thread around a sample of the jobs.",
		Parts: []ledger.Part{
			{ID: "naive", Title: "Naive hardly spends its processor time on work", Subject: "the share of work in naive's processor time", Unit: "%",
				Kind: judge.Every, Rule: judge.Below(25), Spread: 3, Max: 100, Cases: comparison{deciding: []string{Naive}, of: of(workShare)}.cases},
			{ID: "pool", Title: "The pool mostly spends its processor time on work", Subject: "the share of work in the pool's processor time", Unit: "%",
				Kind: judge.Every, Rule: judge.Above(50), Spread: 3, Max: 100, Cases: comparison{of: of(workShare)}.cases},
		},
	},
}

var goals = []ledger.Claim{
	{
		ID: "B/jobs", Title: "With reused buffers Spillway finishes ten times the jobs a second of the published shape", Goal: true,
		Parts: []ledger.Part{{Subject: "Spillway/published shape jobs a second", Unit: "x", Rule: judge.AtLeast(10), Spread: 0.03,
			Cases: comparison{deciding: []string{Reused, Sized}, against: Published, of: overPublished(rate)}.cases}},
	},
	{
		ID: "B/memory", Title: "With reused buffers Spillway takes at most half the memory of the published shape", Goal: true,
		Note: "A job holds its buffer for as long as it runs, so memory is the number of jobs that ever ran at once. A pool without a number runs as many as pay, and knows nothing of memory; MaxWorkers bounds both.",
		Parts: []ledger.Part{{Subject: "Spillway/published shape peak resident memory", Unit: "x", Rule: judge.AtMost(0.5), Spread: 0.03,
			Cases: comparison{deciding: []string{Reused, Sized}, against: Published, of: overPublished(ledger.PeakRSS)}.cases}},
	},
	{
		ID: "B/latency", Title: "Whatever Spillway admits is done in at most twice the time of the work", Goal: true, Note: "What cannot be served in time is refused at once.",
		Parts: []ledger.Part{{Subject: "mean latency from submission/the work itself", Unit: "x", Kind: judge.Every, Rule: judge.AtMost(2), Spread: 0.03,
			Cases: comparison{deciding: ours, of: func(k ledger.Key) ledger.Term { return ledger.Of(k, latency).Over(ledger.Of(k, alone)) }}.cases}},
	},
	{
		ID: "B/refusals", Title: "Refusing takes at most a twentieth of the processors", Goal: true, Note: "Accepted submissions are in it too. Nearly all submissions are refusals.",
		Parts: []ledger.Part{{Subject: "the share of the processors that submissions took", Unit: "%", Kind: judge.Every, Rule: judge.AtMost(5), Spread: 0.3, Max: 100,
			Cases: comparison{deciding: ours, of: of(sendShare)}.cases}},
	},
}

var ours = []string{Spillway, Reused, Sized}

// The figures.
var (
	finished  = counted("jobs finished", func(r *results.Run) float64 { return float64(r.Of("ok").Count) }) // none is a count, too
	rate      = counted("jobs a second", func(r *results.Run) float64 { return r.Rate("ok") })
	refused   = counted("share refused", func(r *results.Run) float64 { return 100 * r.Share("rejected") })
	refusal   = ledger.Quantile("rejected", 0.99, "p99 of a refusal")
	latency   = counted("mean latency", func(r *results.Run) float64 { return mean(r.Of("ok").Latency) })
	killed    = counted("whether it was killed", func(r *results.Run) float64 { return map[bool]float64{true: 100}[r.Killed != ""] })
	alone     = counted("time of a job alone", func(r *results.Run) float64 { return param(r, "work_ms") })
	allowed   = counted("workers and generators", func(r *results.Run) float64 { return param(r, "max_workers") + param(r, "generators") })
	workShare = ledger.Figure{Name: "work's share of the processor time", Key: "work_percent", OfKilled: true}
	sendShare = ledger.Figure{Name: "share of the processors that submissions took", Key: "submit_percent", OfKilled: true}
)

// counted is a figure from the counters that a contestant shares with the lab, so that
// one that was killed has it too.
func counted(name string, value func(*results.Run) float64) ledger.Figure {
	return ledger.Figure{Name: name, OfKilled: true, Value: func(r *results.Run) float64 {
		if r.Offered == 0 {
			return math.NaN()
		}
		return value(r)
	}}
}

// param is a parameter of a run, or NaN.
func param(r *results.Run, name string) float64 {
	if x, ok := r.Params[name].(float64); ok {
		return x
	}
	return math.NaN()
}

// mean is in milliseconds; NaN of none.
func mean(h *histogram.Histogram) float64 {
	if h.Count() == 0 {
		return math.NaN()
	}
	return h.Mean() / 1e6
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
		open := short(e, name, c.against)
		if c.open != nil {
			open = cmp.Or(open, c.open(e, name))
		}
		out = append(out, ledger.Case{Setup: name, Beside: !decides, Value: c.of(at(name)), Open: open, Remark: happened(e, name, c.against)})
	}
	return out
}

// short says that one of the bursts was too short to answer for the published one.
func short(e *ledger.Evidence, names ...string) string {
	for _, name := range names {
		for _, r := range e.Runs(at(name)) {
			if s := param(r, "burst_seconds"); s < publishedTime.Seconds() {
				return fmt.Sprintf("%s was offered %v s of the burst, in which pools have not grown and buffers are new: it takes the published %v (--full).", name, s, publishedTime)
			}
		}
	}
	return ""
}

// unequal says that naive and the contestant were not offered the same load.
func unequal(e *ledger.Evidence, name string) string {
	if slices.ContainsFunc(slices.Concat(e.Runs(at(Naive)), e.Runs(at(name))), func(r *results.Run) bool { return r.Params["generator"] != nil }) {
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

// happened says of each contestant in which repeat it was first killed, or not offered
// the rate.
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
