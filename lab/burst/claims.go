package burst

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/judge"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

var (
	finished = counted("jobs finished", func(r *results.Run) float64 { return float64(r.Of("ok").Count) })
	rate     = counted("jobs a second", func(r *results.Run) float64 { return r.Rate("ok") })
	refused  = counted("share refused", func(r *results.Run) float64 { return 100 * r.Share("rejected") })
	refusal  = counted("p99 of a refusal", ledger.Quantile("rejected", 0.99, "").Value)
	latency  = counted("mean latency", func(r *results.Run) float64 { h := r.Of("ok").Latency; return unless(h.Count() == 0, h.Mean()/1e6) })
	killed   = counted("whether it was killed", func(r *results.Run) float64 { return map[bool]float64{true: 100}[r.Killed != ""] })

	alone     = ledger.Figure{Name: "time of a job alone", Key: "work_ms", OfKilled: true}
	allowed   = ledger.Figure{Name: "workers and generators", Key: "allowed", OfKilled: true}
	workShare = ledger.Figure{Name: "work's share of the processor time", Key: "work_percent", OfKilled: true}
	sendShare = ledger.Figure{Name: "share of the processors that submissions took", Key: "submit_percent", OfKilled: true}
)

// counted is a figure from the counters that a contestant shares with the lab, so that
// one that was killed has it too. Of what was counted, 0 is a figure.
func counted(name string, value func(*results.Run) float64) ledger.Figure {
	return ledger.Figure{Name: name, OfKilled: true, Value: func(r *results.Run) float64 { return unless(r.Offered == 0, value(r)) }}
}

// unless is x, or NaN if it is missing.
func unless(missing bool, x float64) float64 {
	if missing {
		return math.NaN()
	}
	return x
}

// comparison is what a part asks of each contestant.
type comparison struct {
	deciding []string // nil: the published shape, and every other bounded one that was run stands beside it
	against  string   // the other side, if there is one
	of       func(ledger.Key) ledger.Term

	// Why it cannot be decided, and the hardware that would decide it; may be nil, both.
	open, needs func(e *ledger.Evidence, name string) string
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
				if k.Open != "" {
					k.Needs = c.needs(e, name)
				}
			}
		}
		out = append(out, k)
	}
	return out
}

// short says that one of the bursts was too short to answer for the published one.
func short(e *ledger.Evidence, names ...string) string {
	for _, name := range names {
		if took := e.ParamOf(at(name), "burst_seconds"); took < publishedTime.Seconds() {
			return fmt.Sprintf("%s was offered %v s of the burst, in which pools have not grown and buffers are new: it takes the published %v (--full).", name, took, publishedTime)
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

// processors says that it takes those of the publication to offer both the rate.
func processors(e *ledger.Evidence, _ string) string {
	if procs := e.Param("gomaxprocs"); procs < publishedProcessors {
		return fmt.Sprintf("The claim is about a load that was offered by %d processors, and GOMAXPROCS is %.0f. Here a lower --rate can be offered to both.", publishedProcessors, procs)
	}
	return ""
}

// memory says that it takes that of the publication to let naive finish.
func memory(e *ledger.Evidence, _ string) string {
	if mib := e.Param("machine_mib"); mib < publishedMemory {
		return fmt.Sprintf("The claim is about a naive run that took %.1f GB, and there are %.1f: it was killed before it ended.", publishedMemory*mibInGB, mib*mibInGB)
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

// What the published figures were measured with.
const (
	publishedProcessors = 10
	publishedMemory     = 48_500 // MiB
	mibInGB             = 1.048576e-3
)

var family = ledger.Family{
	ID:     "B",
	Title:  "What a burst of a million jobs a second does to unbounded goroutines and to bounded pools",
	Source: "iyashjayesh, github.com/iyashjayesh/go-adaptive-pool and its article on a million requests a second",
	Claims: []ledger.Claim{
		{ID: "B1", Title: "a goroutine for each job takes tens of times the memory of the pool", Any: true,
			Published: "50.86 GB vs 1.41 GB (36x); the published naive run stops itself above 12 GB",
			Note:      "The published \"peak RAM\" is what the runtime had reserved, looked at once a second. One of two is enough: ten times the memory, or more than there is.",
			Parts: []ledger.Part{
				{ID: "memory", Title: "it takes at least ten times the memory", Subject: "naive/pool peak resident memory", Unit: "x", Rule: judge.AtLeast(10), Published: []float64{36}, Spread: 0.03,
					Cases: comparison{against: Naive, of: naiveOver(ledger.PeakRSS), open: cutShort, needs: memory}.cases},
				{ID: "killed", Title: "it needs more memory than there is, the pool does not", Subject: "how often naive was killed by the memory cap and the pool was not", Unit: "%", Kind: judge.Every, Rule: judge.AtLeast(100),
					Cases: comparison{against: Naive, of: func(k ledger.Key) ledger.Term { return ledger.Of(at(Naive), killed).Minus(ledger.Of(k, killed)) }}.cases},
			}},
		{ID: "B2", Title: "the bounded pool finishes 4.6 times as many jobs", Published: "4.6x",
			Note: "The published naive run sleeps 10 µs before each submission and stops itself above 12 GB, so that 4.6x compares two loads. Three times as many at equal offered load would do. It is asked the other way round, because a naive run that is killed may have finished nothing.",
			Parts: []ledger.Part{{Title: "offered the same, naive finishes at most a third of the jobs that the pool finishes",
				Subject: "what naive finished of the pool's jobs", Unit: "%", Rule: judge.AtMost(33.3), Published: []float64{100 / 4.6}, Spread: 2,
				Cases: comparison{against: Naive, of: func(k ledger.Key) ledger.Term { return naiveOver(finished)(k).Times(100) }, open: unequal, needs: processors}.cases}}},
		{ID: "B3", Title: "mean latency in the burst is an order of magnitude lower with the pool", Published: "2,063 vs 161 ms (13x)",
			Note: "The published latency starts when the job starts: the time in a queue of 100,000 is not in it. Here it starts with the submission.",
			Parts: []ledger.Part{{Subject: "naive/pool mean latency from submission", Unit: "x", Rule: judge.AtLeast(5), Published: []float64{13}, Spread: 0.1,
				Cases: comparison{against: Naive, of: naiveOver(latency), open: cutShort, needs: memory}.cases}}},
		{ID: "B4", Title: "goroutines stay at the cap of the pool", Published: "104,473 vs 5,002 at a cap of 5,000",
			Note: "The published figure of the pool is the number of goroutines at the end of the run, not the peak. The runtime and the experiment have some, too: at most 50. A refusal by a context that times out is one more while it lasts: its timer runs in a goroutine of its own.",
			Parts: []ledger.Part{{Subject: "the peak of goroutines less the pool's workers and the generators", Kind: judge.Every, Rule: judge.AtMost(50), Published: []float64{2},
				Cases: comparison{of: func(k ledger.Key) ledger.Term { return ledger.Of(k, ledger.Goroutines).Minus(ledger.Of(k, allowed)) }}.cases}}},
		{ID: "B5", Title: "most of the offered work is refused, at once", Published: "31 million refused by a timeout of 1 µs; no figure of how long a refusal took", Parts: []ledger.Part{
			{ID: "refused", Title: "most of the offered work is refused", Subject: "the refused share of the offered jobs", Unit: "%", Kind: judge.Every, Rule: judge.AtLeast(50), Spread: 2, Max: 100,
				Cases: comparison{of: of(refused)}.cases},
			{ID: "prompt", Title: "a refusal comes at once", Subject: "p99 of a refusal", Unit: "ms", Kind: judge.Every, Rule: judge.Below(1), Spread: 0.1,
				Cases: comparison{of: of(refusal)}.cases},
		}},
		{ID: "B6", Title: "naive spends its processor time on collection and switching, hardly on work; the pool spends it on work", Published: "\"near-zero\" under naive; no figure",
			Note: "Work is allocating and touching the buffer, less what the collector made the job do for it; measured by the processor clock of the thread around a sample of the jobs.",
			Parts: []ledger.Part{
				{ID: "naive", Title: "naive hardly spends its processor time on work", Subject: "the share of work in naive's processor time", Unit: "%", Kind: judge.Every, Rule: judge.Below(25), Spread: 3, Max: 100,
					Cases: comparison{deciding: []string{Naive}, of: of(workShare)}.cases},
				{ID: "pool", Title: "the pool mostly spends its processor time on work", Subject: "the share of work in the pool's processor time", Unit: "%", Kind: judge.Every, Rule: judge.Above(50), Spread: 3, Max: 100,
					Cases: comparison{of: of(workShare)}.cases},
			}},
		{ID: "B/jobs", Goal: true, Title: "with reused buffers Spillway finishes ten times the jobs a second of the published shape",
			Parts: []ledger.Part{{Subject: "Spillway/published shape jobs a second", Unit: "x", Rule: judge.AtLeast(10), Spread: 0.03,
				Cases: comparison{deciding: []string{Reused, Sized}, against: Published, of: overPublished(rate)}.cases}}},
		{ID: "B/memory", Goal: true, Title: "with reused buffers Spillway takes at most half the memory of the published shape",
			Note: "A job holds its buffer for as long as it runs, so memory is the number of jobs that ever ran at once. A pool without a number runs as many as pay, and knows nothing of memory; MaxWorkers bounds both.",
			Parts: []ledger.Part{{Subject: "Spillway/published shape peak resident memory", Unit: "x", Rule: judge.AtMost(0.5), Spread: 0.03,
				Cases: comparison{deciding: []string{Reused, Sized}, against: Published, of: overPublished(ledger.PeakRSS)}.cases}}},
		{ID: "B/latency", Goal: true, Title: "whatever Spillway admits is done in at most twice the time of the work", Note: "What cannot be served in time is refused at once.",
			Parts: []ledger.Part{{Subject: "mean latency from submission/the work itself", Unit: "x", Kind: judge.Every, Rule: judge.AtMost(2), Spread: 0.03,
				Cases: comparison{deciding: []string{Spillway, Reused, Sized}, of: func(k ledger.Key) ledger.Term { return ledger.Of(k, latency).Over(ledger.Of(k, alone)) }}.cases}}},
		{ID: "B/refusals", Goal: true, Title: "refusing takes at most a twentieth of the processors", Note: "Accepted submissions are in it too. Nearly all submissions are refusals.",
			Parts: []ledger.Part{{Subject: "the share of the processors that submissions took", Unit: "%", Kind: judge.Every, Rule: judge.AtMost(5), Spread: 0.3, Max: 100,
				Cases: comparison{deciding: []string{Spillway, Reused, Sized}, of: of(sendShare)}.cases}}},
	},
	Sources: []ledger.Source{{Name: "iyashjayesh/go-adaptive-pool", URL: "https://github.com/iyashjayesh/go-adaptive-pool", What: "and the article that goes with it"}},
	Method: []ledger.Note{
		{Title: "Where latency begins", Text: "The published latency begins when a job starts, so the time in a queue of 100,000 is not in it. Here it begins with the submission. Jobs that one generator submits together share that moment."},
		{Title: "Equal load", Text: "The published naive run sleeps 10 µs before each submission and stops itself above 12 GB. Here every contestant is offered the same by the same generators, in the contestant's own process as published, and a memory cap kills it from outside. A generator that was late submits all that has become due, so that the rate is offered or the run says that it was generator-bound. A submission to the published shape parks its generator until it is accepted or its timeout fires. Jobs finished are compared only if both were offered the rate."},
		{Title: "Watched from outside", Text: "A process with a hundred thousand runnable goroutines cannot report its state: the answer would wait to be scheduled, and a killed process gives none. Contestants count into memory that they share with the lab, without locks; the lab reads it, and memory, processor time and switches from the system. The counts of a killed contestant are those at its end."},
		{Title: "Peaks", Text: "The published \"peak RAM\" is what the runtime had reserved from the system, once a second, and the \"peak goroutines\" of the pool is their number at the end. Here memory is the kernel's own peak of the resident set, goroutines are looked at every ten milliseconds."},
		{Title: "What is work", Text: "One job in 16 takes its buffer under the processor clock of its thread; so does one batch of submissions in 16, where a submission cannot park. What the collector makes an allocating job do for it counts as collection. Page faults on fresh memory are in the work: touching the pages is the work."},
		{Title: "A shorter burst", Text: "The published pool starts with 100 workers and grows by a quarter a second, so that it needs 18 seconds of a full queue for its 5,000: a shorter burst shows its growth, not its size. Ours allocate their buffers and find their sizes in the first seconds, so that a short burst shows them too slow and too small. What was offered less than the published 30 seconds therefore decides nothing; its figures are shown."},
	},
}
