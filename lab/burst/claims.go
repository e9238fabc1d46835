package burst

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
)

var (
	finished = counted("jobs finished", func(r *results.Run) float64 { return float64(r.Of("ok").Count) })
	rate     = counted("jobs a second", func(r *results.Run) float64 { return r.Rate("ok") })
	refused  = counted("share refused", func(r *results.Run) float64 { return 100 * r.Share("rejected") })
	refusal  = counted("p99 of a refusal", ledger.Quantile("rejected", 0.99, "").Value)
	latency  = counted("mean latency", func(r *results.Run) float64 {
		h := r.Of("ok").Latency
		return ledger.Unless(h.Count() == 0, h.Mean()/1e6)
	})
	killed = counted("whether it was killed for its memory", func(r *results.Run) float64 {
		return map[bool]float64{true: 100}[r.Killed != "" && !strings.HasPrefix(r.Killed, contestant.Overdue)]
	})

	reported    = ledger.Figure{Name: "mean latency of what was finished, from the start of a job", Key: "reported_ms", OfKilled: true}
	trueLatency = ledger.Figure{Name: "mean latency from submission, what waits counted with its age", Key: "true_ms", OfKilled: true}

	alone     = ledger.Figure{Name: "time of a job alone", Key: "work_ms", OfKilled: true}
	allowed   = ledger.Figure{Name: "workers, and two for each generator", Key: "allowed", OfKilled: true}
	workShare = ledger.Figure{Name: "work's share of the processor time", Key: "work_percent", OfKilled: true}
	sendShare = ledger.Figure{Name: "share of the processors that submissions took", Key: "submit_percent", OfKilled: true}

	// Of the pool when naive ended, in naive's runs.
	poolFinished = ledger.Figure{Name: "jobs that the pool had finished", Key: "pool_finished", OfKilled: true}
	poolReported = ledger.Figure{Name: "mean latency of what the pool had finished, from the start of a job", Key: "pool_reported_ms", OfKilled: true}
	poolTrue     = ledger.Figure{Name: "mean latency in the pool from submission, what waited counted with its age", Key: "pool_true_ms", OfKilled: true}
)

// counted is a figure from the counters that a contestant shares with the lab, so that
// one that was killed has it too. Of what was counted, 0 is a figure.
func counted(name string, value func(*results.Run) float64) ledger.Figure {
	return ledger.Figure{Name: name, OfKilled: true, Value: func(r *results.Run) float64 { return ledger.Unless(r.Offered == 0, value(r)) }}
}

// comparison is what a part asks of each contestant.
type comparison struct {
	deciding []string // nil: the published shape, and every other bounded one that was run stands beside it
	only     bool     // nothing else stands beside
	of       func(ledger.Key) ledger.Term
	beside   []ledger.Case

	// Why it cannot be decided, and the hardware that would decide it; may be nil.
	open func(e *ledger.Evidence, name string) (open, needs string)
}

func of(f ledger.Figure) func(ledger.Key) ledger.Term {
	return func(k ledger.Key) ledger.Term { return ledger.Of(k, f) }
}

func naiveOver(f ledger.Figure) func(ledger.Key) ledger.Term {
	return func(k ledger.Key) ledger.Term { return ledger.Of(at(Naive), f).Over(ledger.Of(k, f)) }
}

// asPublished compares the published naive run, which stops itself, with the pool.
func asPublished(f ledger.Figure, times float64) []ledger.Case {
	return []ledger.Case{{Setup: Stopped, Beside: true, Value: ledger.Of(at(Stopped), f).Over(ledger.Of(at(Published), f)).Times(times)}}
}

// afterBurst is what became of the workers of the published shape, and beside it of ours.
func afterBurst(f ledger.Figure) func(*ledger.Evidence) []ledger.Case {
	return ledger.Each([]string{Published, Spillway}, func(name string) ledger.Term { return ledger.Of(shrunk(name), f) }, Spillway)
}

// overReused compares with the best of those that reuse buffers without Spillway.
func overReused(best func(...ledger.Term) ledger.Term, f ledger.Figure) func(ledger.Key) ledger.Term {
	return func(k ledger.Key) ledger.Term {
		return ledger.Of(k, f).Over(best(ledger.Of(at(ChannelReused), f), ledger.Of(at(PublishedReused), f)))
	}
}

func (c comparison) cases(e *ledger.Evidence) (out []ledger.Case) {
	for _, name := range Names() {
		decides := slices.Contains(c.deciding, name) || c.deciding == nil && name == Published
		if !decides && (c.deciding != nil || c.only || name == Naive || name == Stopped || !e.Has(at(name))) {
			continue
		}
		out = append(out, c.fit(e, ledger.Case{Setup: name, Beside: !decides, Value: c.of(at(name))}, name))
	}
	for _, k := range c.beside {
		out = append(out, c.fit(e, k, Published))
	}
	return out
}

// fit adds to a case about a contestant what happened to it and to those it is compared
// with, and whether they can be.
func (c comparison) fit(e *ledger.Evidence, k ledger.Case, name string) ledger.Case {
	sides := []string{name}
	for _, key := range k.Value.Keys() {
		if key.Pattern != name {
			sides = append(sides, key.Pattern)
		}
	}
	if k.Open, k.Needs = unlike(e, sides); k.Open == "" {
		k.Remark = happened(e, sides)
		if c.open != nil && k.Setup == name {
			k.Open, k.Needs = c.open(e, name)
		}
	}
	return k
}

// unlike says that one of the bursts cannot answer for the published one, and which
// hardware could.
func unlike(e *ledger.Evidence, names []string) (open, needs string) {
	procs := e.Param("gomaxprocs")
	for _, name := range names {
		took, per := e.ParamOf(at(name), "burst_seconds"), e.ParamOf(at(name), "per_processor")
		switch {
		case took < publishedTime.Seconds():
			return fmt.Sprintf("%s was offered %v s of the burst, in which pools have not grown and buffers are new: it takes the published %v, without --time.", name, took, publishedTime), ""
		case per < 0.99*publishedRate:
			return fmt.Sprintf("%s was offered %.0f jobs a second for each processor: the claim is about %d, without --rate.", name, per, publishedRate), ""
		case per > 1.01*publishedRate && procs < publishedProcessors:
			return fmt.Sprintf("%s was offered more than %d jobs a second for each processor.", name, publishedRate),
				fmt.Sprintf("The published load was offered by %d processors, and GOMAXPROCS is %.0f: without --rate it is in proportion to them.", publishedProcessors, procs)
		}
	}
	return "", ""
}

// starving says that naive and the contestant were not offered the same load.
func starving(e *ledger.Evidence, name string) (open, needs string) {
	starved := func(r *results.Run) bool { return r.Params["starved"] == true }
	if slices.ContainsFunc(slices.Concat(e.Runs(at(Naive)), e.Runs(at(name))), starved) {
		open = fmt.Sprintf("Naive and %s were not offered the same load, and what was missed might have been done.", name)
	}
	return open, ""
}

// unequal says likewise, or that naive was killed before the machine's memory was used, and
// at its pace might have finished enough.
func unequal(e *ledger.Evidence, name string) (open, needs string) {
	if open, needs = starving(e, name); open != "" {
		return open, needs
	}
	for naive, pool := range repeats(e, name) {
		cap, _ := naive.Params["cap"].(string)
		pace := 100 * naive.Rate("ok") * publishedTime.Seconds() / float64(pool.Of("ok").Count)
		if naive.Killed != "" && strings.HasPrefix(cap, byPool) && pace > mostOfPool {
			return "Naive was killed for eleven times the memory of the pool, and there is more: at its pace until then it would have finished more than a third. It takes a --memory-cap.", ""
		}
	}
	return "", ""
}

// cutShort says that more of naive's memory is not known than that it is so many times the
// contestant's.
func cutShort(e *ledger.Evidence, name string) (open, needs string) {
	for naive, other := range repeats(e, name) {
		if naive.Killed == "" || naive.Process.PeakRSS >= memoryTimes*other.Process.PeakRSS {
			continue
		}
		if mib := e.Param("machine_mib"); mib < publishedMemory {
			needs = fmt.Sprintf("The claim is about a naive run that took %.1f GB, and there are %.1f: it was killed before it ended.", publishedMemory*mibInGB, mib*mibInGB)
		}
		return "Naive was killed: how much it would have taken is not known. It takes more memory, and a --memory-cap that lets it go on.", needs
	}
	return "", ""
}

// tooFew says that naive was killed before it had as many goroutines as the claim speaks of.
func tooFew(e *ledger.Evidence, name string) (open, needs string) {
	for _, r := range e.Runs(at(name)) {
		if r.Killed != "" && r.Process.PeakGoroutines < 100_000 {
			return "Naive was killed before it had as many goroutines. It takes more memory, and a --memory-cap that lets it go on.", ""
		}
	}
	return "", ""
}

// repeats pairs naive's runs with those of the contestant in the same repeat.
func repeats(e *ledger.Evidence, name string) iter.Seq2[*results.Run, *results.Run] {
	return func(yield func(naive, other *results.Run) bool) {
		for _, naive := range e.Runs(at(Naive)) {
			for _, other := range e.Runs(at(name)) {
				if naive.Repeat == other.Repeat && !yield(naive, other) {
					return
				}
			}
		}
	}
}

// happened says when each contestant was first killed, and not offered all in time.
func happened(e *ledger.Evidence, names []string) string {
	var said []string
	for _, name := range names {
		for _, r := range e.Runs(at(name)) {
			why, _ := r.Params["generator"].(string)
			if r.Killed != "" {
				why = strings.TrimSuffix(fmt.Sprintf("%s (%v), with %d of %d jobs done; %s", r.Killed, r.Params["cap"], r.Of("ok").Count, r.Offered, why), "; ")
			}
			if why != "" {
				said = append(said, fmt.Sprintf("In repeat %d %s was %s.", r.Repeat+1, name, why))
				break
			}
		}
	}
	return strings.Join(said, " ")
}

// The bounds of B1 and B2.
const (
	memoryTimes = 10
	mostOfPool  = 33.3 // %, of the pool's jobs
	mibInGB     = 1.048576e-3
)

// lower is a part about a mean latency of naive and of the pool when naive ended.
func lower(id, title, subject string, naive, pool ledger.Figure) ledger.Part {
	return ledger.Part{ID: id, Title: title, Subject: subject, Unit: "x", Kind: judge.Every, Rule: judge.AtLeast(5), Published: []float64{13}, Spread: 0.1,
		Cases: comparison{only: true, of: func(ledger.Key) ledger.Term {
			return ledger.Of(at(Naive), naive).Over(ledger.Of(at(Naive), pool))
		}, open: starving, beside: asPublished(naive, 1)}.cases}
}

var family = ledger.Family{
	ID:     "B",
	Title:  "What a burst of a hundred thousand jobs a second and processor does to unbounded goroutines and to bounded pools",
	Source: "iyashjayesh, github.com/iyashjayesh/go-adaptive-pool and its article on a million requests a second",
	Claims: []ledger.Claim{
		{ID: "B1", Title: "a goroutine for each job takes tens of times the memory of the pool", Any: true,
			Published: "50.86 GB vs 1.41 GB (36x); the published naive run stops itself above 12 GB",
			Note:      "The published \"peak RAM\" is what the runtime had reserved, looked at once a second. One of two is enough: ten times the memory, or killed by a memory cap of ten times the pool's peak. The cap is eleven times that peak in the same repeat, or half of the machine's memory where that is less: being killed by a smaller cap shows nothing.",
			Parts: []ledger.Part{
				{ID: "memory", Title: "it takes at least ten times the memory", Subject: "naive/pool peak resident memory", Unit: "x", Kind: judge.Every, Rule: judge.AtLeast(memoryTimes), Published: []float64{36}, Spread: 0.03,
					Cases: comparison{of: naiveOver(ledger.PeakRSS), open: cutShort, beside: asPublished(ledger.PeakRSS, 1)}.cases},
				{ID: "killed", Title: "it is killed by a memory cap of ten times what the pool takes, and the pool is not", Subject: "how often naive was killed by the memory cap and the pool was not", Unit: "%", Kind: judge.Every, Rule: judge.AtLeast(100),
					Cases: comparison{of: func(k ledger.Key) ledger.Term { return ledger.Of(at(Naive), killed).Minus(ledger.Of(k, killed)) }, open: cutShort}.cases},
			}},
		{ID: "B2", Title: "the bounded pool finishes 4.6 times as many jobs", Published: "4.6x",
			Note: "The published naive run sleeps 10 µs after each submission and stops itself above 12 GB, so that 4.6x compares two loads; naive-stopped does likewise. Three times as many at equal offered load would do, 100,000 a second for each processor as published. It is asked the other way round, because a naive run that is killed may have finished nothing. A run that is killed has finished what it had finished by then; how the two compare at that moment stands beside.",
			Parts: []ledger.Part{{Title: "offered the same, naive finishes at most a third of the jobs that the pool finishes",
				Subject: "what naive finished of the pool's jobs", Unit: "%", Kind: judge.Every, Rule: judge.AtMost(mostOfPool), Published: []float64{100 / 4.6}, Spread: 2,
				Cases: comparison{of: func(k ledger.Key) ledger.Term { return naiveOver(finished)(k).Times(100) }, open: unequal, beside: append(asPublished(finished, 100),
					ledger.Case{Setup: "when naive ended", Beside: true, Value: ledger.Of(at(Naive), finished).Over(ledger.Of(at(Naive), poolFinished)).Times(100)})}.cases}}},
		{ID: "B3", Title: "mean latency in the burst is an order of magnitude lower with the pool", Published: "2,063 vs 161 ms (13x)",
			Note: "The published latency starts when the job starts: the time in a queue of 100,000 is not in it. The other one starts with the submission, and what still waits or runs counts with its age. Both are compared at the moment when naive ended, by itself or killed: no latency can be longer than the time until then.",
			Parts: []ledger.Part{
				lower("reported", "as the source counts, from the start of a job, the pool's mean latency is a fifth or less", "naive/pool mean latency from the start of a job", reported, poolReported),
				lower("true", "from submission, what waits counted with its age, the pool's mean latency is a fifth or less", "naive/pool mean latency from submission", trueLatency, poolTrue),
			}},
		{ID: "B4", Title: "goroutines stay at the cap of the pool", Published: "104,473 vs 5,002 at a cap of 5,000",
			Note: "The published figure of the pool is the number of goroutines at the end of the run, not the peak. A refusal by a context that times out is a goroutine while it lasts, because its timer runs in one of its own: so a generator counts twice. The runtime and the experiment have some, too: at most 50.",
			Parts: []ledger.Part{{Subject: "the peak of goroutines less the pool's workers and two for each generator", Kind: judge.Every, Rule: judge.AtMost(50), Published: []float64{2},
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
		{ID: "B7", Title: "workers shrink after an idle time, never below the minimum", Published: "a rule; no figure",
			Note: "All times of the pool are a hundredth of the published: 10 ms between two looks, 0.3 s until an idle worker ends. Jobs only wait, for 20 ms, until thousands of workers are idle at once. A worker of the published pool counts the workers and then goes, which are two steps: two workers may see one too many, and both go.",
			Parts: []ledger.Part{
				{ID: "shrinks", Title: "three idle times after the burst at most a tenth more than the minimum are left", Subject: "the workers that were left, of the minimum", Unit: "%", Kind: judge.Every, Rule: judge.AtMost(110),
					Cases: afterBurst(ledger.Extra("left_percent", "workers three idle times after the burst"))},
				{ID: "minimum", Title: "workers are never fewer than the minimum", Subject: "the fewest workers, of the minimum", Unit: "%", Kind: judge.Never, Rule: judge.AtLeast(100),
					Cases: afterBurst(ledger.Extra("least_percent", "fewest workers after the burst"))},
			}},
		{ID: "B/jobs", Goal: true, Title: "with reused buffers Spillway finishes as many jobs as a channel or the published shape with reused buffers",
			Note: "To reuse buffers saves most of the work, whatever bounds it: so these are compared with what reuses them, too. As many is at least 0.95 of the better of both.",
			Parts: []ledger.Part{{Subject: "Spillway/best other jobs a second", Unit: "x", Rule: judge.AtLeast(0.95), Spread: 0.03,
				Cases: comparison{deciding: []string{Reused, Sized}, of: overReused(ledger.Best, rate)}.cases}}},
		{ID: "B/memory", Goal: true, Title: "told how many workers, Spillway takes at most a tenth more memory than a channel with as many, or than the published shape",
			Note: "All reuse buffers. A job holds its buffer for as long as it runs, so memory is the number of jobs that ever ran at once. A pool without a number runs as many as pay, and knows nothing of memory; MaxWorkers bounds both.",
			Parts: []ledger.Part{{Subject: "Spillway/leanest other peak resident memory", Unit: "x", Rule: judge.AtMost(1.1), Spread: 0.03,
				Cases: comparison{deciding: []string{Sized}, of: overReused(ledger.Least, ledger.PeakRSS),
					beside: []ledger.Case{{Setup: Reused, Beside: true, Value: overReused(ledger.Least, ledger.PeakRSS)(at(Reused))}}}.cases}}},
		{ID: "B8", Title: "a goroutine for each job is more than 100,000 goroutines", Published: "104,473 vs 5,002 at a cap of 5,000",
			Note: "The goroutines are those of unfinished jobs at any time of the burst. That the pool stays at its cap is B4.",
			Parts: []ledger.Part{{Subject: "the peak of naive's goroutines", Kind: judge.Every, Rule: judge.AtLeast(100_000), Published: []float64{104_473},
				Cases: comparison{deciding: []string{Naive}, of: of(ledger.Goroutines), open: tooFew, beside: []ledger.Case{{Setup: Stopped, Beside: true, Value: ledger.Of(at(Stopped), ledger.Goroutines)}}}.cases}}},
		{ID: "B/latency", Goal: true, Title: "whatever Spillway admits is done in at most twice the time of the work", Note: "What cannot be served in time is refused at once.",
			Parts: []ledger.Part{{Subject: "mean latency from submission/the work itself", Unit: "x", Kind: judge.Every, Rule: judge.AtMost(2), Spread: 0.03,
				Cases: comparison{deciding: []string{Spillway, Reused, Sized}, of: func(k ledger.Key) ledger.Term { return ledger.Of(k, latency).Over(ledger.Of(k, alone)) }}.cases}}},
		{ID: "B/refusals", Goal: true, Title: "refusing takes at most a twentieth of the processors", Note: "Accepted submissions are in it too. Nearly all submissions are refusals.",
			Parts: []ledger.Part{{Subject: "the share of the processors that submissions took", Unit: "%", Kind: judge.Every, Rule: judge.AtMost(5), Spread: 0.3, Max: 100,
				Cases: comparison{deciding: []string{Spillway, Reused, Sized}, of: of(sendShare)}.cases}}},
	},
	Sources: []ledger.Source{{Name: "iyashjayesh/go-adaptive-pool", URL: "https://github.com/iyashjayesh/go-adaptive-pool", What: "and the article that goes with it"}},
	Method: []ledger.Note{
		{Title: "Where latency begins", Text: "The published latency begins when a job starts, so the time in a queue of 100,000 is not in it. Elsewhere than in the first part of B3 it begins with the submission. Jobs that one generator submits together share that moment."},
		{Title: "Equal load", Text: "The load is a hundred thousand jobs a second for each processor, as published. Every contestant but naive-stopped is offered it by one schedule, which a thousand generators share, in the contestant's own process as published: whichever is free submits all that is due. Where goroutines are unbounded all generators soon wait behind the jobs that they spawned, for minutes; there a job that begins submits what is due, too. A submission to the published shape parks its generator until it is accepted or its timeout fires. What is submitted over 100 ms after it was due, or not at all, is counted, and said where it is more than a twentieth; then the contestants are compared all the same if each refused or left most of what was offered to it, for more would have joined that."},
		{Title: "Killed", Text: "A memory cap kills a contestant from outside, and that is a result. The published pool runs first in each repeat, and then naive under a cap of eleven times its peak, for the claim is about ten times; or under half of the machine's memory where that is less. So naive is killed within seconds, and the verdict says when, by which cap, and how many times the pool's memory that is. A contestant that has not ended a quarter of a minute after the burst, naive three seconds, is killed, too, and what it did until then counts. A process that is killed has no noise to compare itself with: every repeat has to satisfy the rule, by what sessions differ."},
		{Title: "Watched from outside", Text: "A process with a hundred thousand runnable goroutines cannot report its state: the answer would wait to be scheduled, and a killed process gives none. Contestants count into memory that they share with the lab, without locks; the lab reads it, and memory, processor time and switches from the system. The counts of a killed contestant are those at its end."},
		{Title: "Peaks", Text: "The published \"peak RAM\" is what the runtime had reserved from the system, once a second, and the \"peak goroutines\" of the pool is their number at the end. Here memory is the kernel's own peak of the resident set, goroutines are looked at every ten milliseconds. A run ends a second after its burst; jobs that are not done by then are left. The published figures are those at the end of the burst."},
		{Title: "What is work", Text: "One job in 16 takes its buffer under the processor clock of its thread; so does one batch of submissions in 16, where a submission cannot park and a batch is more than one job. What the collector makes an allocating job do for it counts as collection. Page faults on fresh memory are in the work: touching the pages is the work."},
		{Title: "A shorter burst", Text: "The published pool starts with 100 workers and grows by a quarter a second, so that it needs 18 seconds of a full queue for its 5,000: a shorter burst shows its growth, not its size. Ours allocate their buffers and find their sizes in the first seconds, so that a short burst shows them too slow and too small. What was offered less than the published 30 seconds therefore decides nothing; its figures are shown."},
	},
}
