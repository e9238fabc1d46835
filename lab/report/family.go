package report

import (
	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// family is a family of the ledger with the data that only a report needs: its sources,
// and notes on how the published figures were made.
type family struct {
	claims.Family
	Sources []source
	Method  []note
	Figures []ownFigure // of its own; a set-up in which nothing is sent shows them
	Stacks  stacks      // bars of the parts of those figures; none without parts
	Behind  string      // the figure that is above 1 where Spillway loses; empty: none
	Grid    string      // how the set-ups of a grid begin; empty: there is none
}

// ownFigure is one of a run's Extra.
type ownFigure struct {
	Key, Name string
	Format    func(float64) string
}

type source struct{ Name, URL, What string }

type note struct{ Title, Text string }

// families by their id in the ledger.
var families = map[string]family{
	"G": {
		Sources: []source{{
			Name: "gsarmaonline/golang-measurements",
			URL:  "https://github.com/gsarmaonline/golang-measurements",
			What: "and the article that goes with it",
		}},
		Method: []note{
			{"The buffer decides", "The published benchmarks do not state the size of the channels' buffers. An unbuffered channel parks and wakes a goroutine for every unit, a buffer of 128 lets both sides run on; that moves a pool by several times, more than its number of workers does. So every claim about channels is judged for each buffer."},
			{"Two ways to measure", "Auto-scaled: batches grow until one takes long enough, after a collection, the start of the workers left out, as package testing does. By the wall clock: one batch of a million, once, cold, the start of the workers in it. Rates below are units of work a second."},
			{"How many goroutines for CPU-bound work", "Tasks of pure computing, some 15 µs each, under bounds from one goroutine to 128 times GOMAXPROCS, by a pool on an unbuffered channel, by a semaphore with a goroutine for each task, and by a dispatcher that hands a task to a worker that is idle. Beyond GOMAXPROCS every bound keeps the processors busy: a difference counts only if it exceeds what the same bound differs from itself."},
			{"Objects or goroutines", "Processor time a request, for the same number of requests at once: a goroutine and an object for each (spawn), reused goroutines (pool), reused goroutines and objects (pool-reuse). In the set-up of H these are the patterns naive, workerpool and optimized over its simulated store at a tenth of the latency; in that of B, jobs of 500 KB and 20 ms with a hundred at once."},
		},
	},
	"G7": {
		Sources: []source{{
			Name: "gsarmaonline/golang-measurements",
			URL:  "https://github.com/gsarmaonline/golang-measurements",
			What: "and the article that goes with it",
		}},
		Figures: []ownFigure{
			{"cpu_us", "processor time for a request", micros}, {"share", "share of the lead, %", decimals},
			{"allocs", "allocations", decimals}, {"bytes", "allocated", size}, {"peak_rss", "peak RSS", size},
		},
		Grid: "every other set",
		Stacks: stacks{
			Axis:  "µs of processor time for a request",
			Total: ownFigure{"cpu_us", "", micros},
			Note:  ownFigure{"share", "% of the lead", decimals},
			Parts: []part{
				{"floor_us", "reads and writes alone", "s0"}, {"above_us", "the server's own", "s1"},
				{"rest_high_us", "net/http − small server, no saving", "rejected"},
				{"pooled_state_us", "pooled state", "s2"}, {"byte_API_us", "byte API", "s3"}, {"own_parser_us", "own parser", "s4"},
				{"connection_workers_us", "connection workers", "s5"}, {"no_background_read_us", "no background read", "s6"},
				{"one_write_buffer_us", "one write buffer", "s7"},
				{"rest_low_us", "small server, every saving − fasthttp", "error"},
			},
			Whole: "net/http", Steps: 2,
		},
		Method: []note{
			{"What is measured", "Processor time of the server's process, user and system, as the system reports it, over the requests it answered. Time on the clock would measure the client and the network too. Each server is a process of its own and so is the client, which writes fixed bytes, parses the first answer of a connection and compares the others. All servers are there from the beginning and take short turns in random order; the mean over the turns of a repeat counts, the first turn is a warm-up."},
			{"The same request", "A GET with seven fields; every handler cuts the id out of the path, echoes one field and writes a body of some 80 bytes with its type. The raw floor reads and writes as many fixed bytes and understands none."},
			{"All orders", "What a saving is worth depends on the others: a reused request saves less where strings are allocated anyway. So the small server runs with every set of savings, and a saving's share is what it takes off in the mean of all orders in which they can be added, in per cent of what fasthttp needs less than net/http in the same repeat. Added to none and taken from all are the ends of that, shown apart."},
			{"What stands in its place", "Without a saving the small server does what net/http does, with the same library where it is public: http.ReadRequest, url, http.Header, a context, a goroutine that reads ahead, seven deadlines, two buffers. It is no product and has no limits on time."},
			{"What cannot be switched", "fasthttp's parser and net/http's goroutine for each connection. fasthttp loses its reuse by a request, an answer and a new context; net/http's connections are handed to workers one at a time, which bounds them and saves nothing."},
			{"What is explained", "The lead is, in every repeat: what net/http needs beyond the small server without savings, the share of each saving, and what the small server with every saving needs beyond fasthttp. Explained is the lead without the sizes of the two parts that are no saving's share. They may be below 0, and are taken off all the same: a small server that is too cheap at both ends has the right difference and the wrong reasons."},
		},
	},
	"B": {
		Sources: []source{{
			Name: "iyashjayesh/go-adaptive-pool",
			URL:  "https://github.com/iyashjayesh/go-adaptive-pool",
			What: "and the article that goes with it",
		}},
		Method: []note{
			{"Where latency begins", "The published latency begins when a job starts, so the time in a queue of 100,000 is not in it. Here it begins with the submission. Jobs that one generator submits together share that moment."},
			{"Equal load", "The published naive run sleeps 10 µs before each submission and stops itself above 12 GB. Here every contestant is offered the same by the same generators, in the contestant's own process as published, and a memory cap kills it from outside. A generator that was late submits all that has become due, so that the rate is offered or the run says that it was generator-bound, and why."},
			{"Watched from outside", "A process with a hundred thousand runnable goroutines cannot report its state: the answer would wait to be scheduled, and a killed process gives none. Contestants count into memory that they share with the lab, without locks; the lab reads it, and memory, processor time and switches from the system. The counts of a killed contestant are those at its end."},
			{"Peaks", "The published \"peak RAM\" is what the runtime had reserved from the system, once a second, and the \"peak goroutines\" of the pool is their number at the end. Here memory is the kernel's own peak of the resident set, goroutines are looked at every ten milliseconds."},
			{"What is work", "One job in 16 takes its buffer under the processor clock of its thread; so does one batch of submissions in 16, where a submission cannot park. What the collector makes an allocating job do for it counts as collection. Page faults on fresh memory are in the work: touching the pages is the work."},
			{"A shorter burst", "A scaled burst cuts only its length. The published pool starts with 100 workers and grows by a quarter a second, so that it needs 18 seconds of a full queue for its 5,000: shorter bursts show its growth, not its size."},
		},
	},
	"F": {
		Sources: []source{{Name: "an article on goroutines for a composite user store", What: "whose code is rendered here from its description"}},
		Figures: []ownFigure{
			{"ns", "time for a lookup", nanos}, {"lost", "of the caches' answers lost", percent}, {"allocs", "allocations", number}, {"bytes", "bytes", number},
			{"free", "processors available", decimals}, {"behind", "Spillway's time/this one's", ratio}, {"goroutines", "goroutines beside the caller", number},
			{"to_parallel", "calls until parallel", number}, {"to_sequential", "calls until sequential", number},
			{"p50", "p50", nanos}, {"p99", "p99", nanos}, {"extra", "second attempts, %", decimals}, {"outage", "in an outage, %", decimals}, {"cancelled", "first attempts cancelled too early", number},
		},
		Behind: "behind",
		Grid:   "grid, ",
		Method: []note{
			{"What is compared", "A database and n − 1 caches are asked for users; each cache has one that no other source has, so that a lost answer is noticed. sequential asks one after the other. as-printed asks the caches in goroutines and reads what they answered before it has waited for them. corrected waits first, and is otherwise the same: it cancels no branch and reports no error of a cache. errgroup and conc are used in their usual way. spillway is configured only with which branch is required. What it does beyond the others (errors with names, panics, cancellation, measuring) is in its figures."},
			{"Virtual time", "Where sources wait, the clock is that of testing/synctest: it stands still while any goroutine can run and jumps when all wait. Times are exact and computing is free, so that what goroutines cost does not show. The lab runs such a contestant as a test binary in a process of its own."},
			{"Real time", "Where sources compute, they burn a calibrated number of turns, touching no memory. \"Waiting that yields\" offers its processor to others until its time is over, which shows the cost of goroutines for waits that are too short for a timer. time.Sleep takes more than a millisecond on many systems, whatever it is asked for, and is used at 50 ms only."},
			{"A free processor", "Before and after each round two goroutines compute for some milliseconds each. Only if together they got 1.6 processors does the round count for claims about a free one. \"One processor\" is GOMAXPROCS=1: none is ever free."},
			{"In turns", "The contestants of one table take turns in one process, in a new order each round; a contestant lives through all rounds, so that one that learns has learned. Ratios are taken within a round, of which the median counts; the verdict's interval is over repeats. Spillway plays twice: what it differs from itself is the noise floor."},
			{"Break-even", "The duration of a branch from which corrected is faster than sequential for good, between two durations of the grid on logarithmic scales."},
			{"The grid", "Branches of equal length. The better is the contestant with the shortest mean time in that cell, so that the noise of each repeat does not change the choice. Cells whose sequential lookup would take more than 40 ms (with --grid 100 ms) are not run in real time: parallel has won long before."},
			{"Allocations", "Counted with sources that do nothing, under a context that can be cancelled. spillway-parallel is configured to be parallel, as it is by itself if branches wait; spillway-borrowed also with the option that no branch keeps its context."},
			{"Hedging", "Two sources answer in 10 ms ± 20 %; one attempt in a hundred takes 1 s. In the outage all attempts take 1 s and fail."},
		},
	},
	"R": {
		Sources: []source{{Name: "a benchmark report, \"sync.Pool Performance Analysis for Route Package\"", What: "whose layer is rendered here from its description"}},
		Figures: []ownFigure{
			{"cpu_ns", "processor time for a request, net", nanos}, {"allocs", "allocations, net", decimals}, {"bytes", "allocated, net", size},
			{"wall_ns", "time on the clock for a request, net", nanos},
			{"cpu_ns_total", "processor time with the harness", nanos}, {"cpu_ns_harness_share", "of it the harness, %", decimals}, {"allocs_total", "allocations with the harness", decimals},
			{"behind", "Spillway's time/this one's", ratio},
			{"pause_p99_us", "p99 of the collector's pauses, µs", number}, {"pauses", "pauses", number},
		},
		Behind: "behind",
		Method: []note{
			{"What is measured", "Processor time of the contestant's process, user and system, its collector included, over the requests of a turn. Every contestant is a process of its own; all are there from the beginning of a repeat and take turns in random order, the first of which are a warm-up. A repeat's figure is the mean of the middle half of the turns. Time on the clock counts in the parallel scenario of the published shape only, where the claim is about contention."},
			{"Net of the harness", "Request, body reader and response writer are used again; before each request the request is copied from a template, since muxes and handlers leave things in it. What that costs with a handler that does nothing (the row \"nothing\") is subtracted. The published harness makes a request and a httptest recorder for each iteration; it is run with the same builds, and the share of it is a figure."},
			{"Two builds", "A typed layer over gin in the published shape: a function of a request and a response type, names, descriptions, middleware, binding from path, query and body by content type, Server-Timing for decoding, answers that choose their status or are a file or a stream. One build takes its context from a sync.Pool, cleared when it is given back, and nothing else differs. The published builds differed elsewhere: the pooled one had lost a Sprintf, which is the third row, and what the set-up with the published harness judges. The fresh build runs twice; what it differs from itself is noise."},
			{"The form row", "With form tags that work, a form is bound and answered 201. The published type appears to have had none: gin then looks for fields by their Go names, finds none, and what is required is missing. The row without tags measures such a 400."},
			{"The traffic", "60 % JSON, 20 % GET, 10 % form, 5 % large, 5 % parallel, averaged as the ratio of the mean times and as the mean of the ratios."},
			{"The same work for all", "Path, query and body are bound, seven fields are checked, everything that was sent is in the answer; a test sends good and bad requests to all and compares status and answer. By hand: net/http's mux with checks written out, the first fault told; with go-playground/validator, all faults told; the same on chi; gin's own binding, which brings the validator; echo's binding with it. Bodies are bounded to 1 MiB and unknown JSON members refused by all."},
			{"What differs all the same", "Spillway also refuses unknown form fields and query parameters, repeated members and more than one document, and lists every fault with a pointer. huma answers faults with 422, reads no urlencoded form (it has no figure there) and takes a body without a content type for JSON; with it, as with the hand-written handlers, a wrong type ends the list of faults. fuego takes every content type that it does not know for JSON and writes Server-Timing, as only \"spillway, Server-Timing\" does otherwise."},
			{"fiber", "It is no net/http handler: its request is fasthttp's, filled again each time, which the row \"nothing\" of its own contest does as well. Its figures do not stand beside the others': a server on fasthttp saves elsewhere, see experiment G7, and its strings are valid only until the handler returns."},
			{"Version 2 of encoding/json", "In a build with GOEXPERIMENT=jsonv2, the hand-written handlers call version 2 and the frameworks still call version 1, which is then implemented by version 2."},
		},
	},
	"overload": {
		Method: []note{
			{"What is scarce", "A database with a knee, in front of SQLite: ten lookups at a time run at full speed, 20 to 60 ms each. Beyond that they share it, and the sharing costs: with c of them running the total falls to √(10/c), so that forty do half of what ten do. It refuses nothing and reports nothing. A caller that leaves takes its lookup along."},
			{"The load", "An open loop with Poisson arrivals: clients that do not wait for each other. The capacity is measured first, in a closed loop around the database's slots. Every request waits a second and says so in a header that becomes the context's deadline; every fifth is critical and says so too. Latency counts from the intended start. Each measurement follows a warm-up under the same load. One whose generator sent late, because the machine was busy elsewhere, is made again, at most twice."},
			{"What the contestants know", "semaphore, semaphore-try and workerpool were given the size of the database, which an operator has to guess; semaphore-4x is the same guess, four times off. failsafe and spillway have no such number. semaphore waits as long as the deadline allows, first come, first served; semaphore-try refuses at once."},
			{"Side by side", "Up to the capacity all contestants run at the same time, each in its own process, up to twice the capacity half of them; beyond that each runs alone. Nearly all of a lookup is waiting, so that they do not compete for processors."},
		},
	},
	"admission": {
		Method: []note{
			{"The service", "One handler that waits for a backend of ten slots, 20 to 60 ms a request, behind admissionhttp with limiter.Config{}, in a process of its own. N-way: ten at a time, others wait in a hidden queue, and what is in a slot runs to its end also when its client has left. Degrading: all run at once, and with c of them the total falls to √(10/c); work ends when its client leaves. The capacity is measured in a closed loop without a limit, in every repeat."},
			{"Where retries are counted", "200 clients, each with a transport of admissionhttp/client and so with a budget and a memory of its own, send three times the capacity between them, by an open loop with Poisson arrivals. A request has five seconds, its retries included. Arrivals are counted by the service, retries included, in steps of 100 ms from the first refusal on. Goodput is what was answered within the measurement, and the load goes on after it, so that nothing is served by an idle backend later. A request that a client held back itself counts as refused."},
			{"Clients that leave", "Every third client closes its connection after half of the mean service time. What those that stay can get is the capacity without what the others use of it, where each of them is admitted: a third of the clients uses half of its work on the degrading backend, all of it in a slot of the N-way one."},
			{"A dry run", "Requests without retries, that leave after a second, come slowly until twice the capacity, once in a dry run and once for real. Of each priority the share that would have been refused is compared with the share that was refused, or left while it waited. On the degrading backend the dry run sees the collapse that a limit prevents: there its report has to say that the estimate is unsafe."},
			{"Hostile clients", "From a third process: connections that stay idle (a third of the files that a process may open, at most 50,000), 200 that send a header a second, headers of 1 MB, bodies without an end and bodies of two bytes a second, clients that close their half before the answer or within the request, and HTTP/2 streams that are reset as soon as they are opened. What they send is bounded, some megabytes and two thousand streams a second. Probes come on a new connection each, 50 a second, and their time counts from the intended start. Known clients have a credential and are critical. A slow body holds a slot until http.Server.ReadTimeout, here ten seconds: that is what the known clients lose."},
			{"A busy machine", "A run whose clients sent late (p99 above 20 ms) is made again, once. What is sent late comes all at once: on a busy machine arrivals have peaks, and probes are slow, that are not the service's."},
		},
	},
	"pools": {
		Figures: []ownFigure{
			{"ns", "time for each", nanos}, {"allocs", "allocations for each", decimals}, {"behind", "Spillway's time/this one's", ratio},
			{"worker_bytes", "of an idle worker", size}, {"job_bytes", "of a queued job", size},
			{"finish", "time/ideal", ratio}, {"cpu_seconds", "processor s", decimals}, {"peak_rss", "peak RSS", size}, {"peak_goroutines", "peak goroutines", number}, {"left", "workers left", number},
		},
		Behind: "behind",
		Method: []note{
			{"In turns", "The contestants of one table, all numbers of workers included, take turns in one process, in a new order each round. Before each turn the contestant is made, warmed and the heap collected; afterwards it is ended. Ratios are taken within a round, of which the median counts; the verdict's interval is over repeats. Spillway runs twice: its difference from itself is the noise floor. Every round of every contestant is in runs.jsonl."},
			{"1→2", "The columns are producers→workers. A producer is a goroutine that submits; with more than one, all begin at the same moment."},
			{"The queue", "Every bounded queue has the same number of places, 1,024 unless the command says otherwise. A bare channel's figures move several times over with that number. Spillway counts, measures waits and catches panics while it is compared with a channel that does not."},
			{"Contestants without a queue", "semaphore, errgroup, ants and conc make the submitter wait until a worker is free; gammazero's queue has no bound, so its submitters never wait. tunny only calls and appears where results are waited for; conc and gammazero cannot refuse."},
			{"When a job counts", "The end of a job is not reported, except for the last one of each producer: a counter that all jobs share would cost as much as what is measured. A turn ends when those have ended."},
			{"Refusals", "Workers and queue are full of jobs that do not end. Every submission must be refused, or there is no figure; Spillway's own count must agree. The bare try-send counts nothing."},
			{"Memory", "Live heap and stacks after two collections, divided by 1,000 workers that have run once, and by 100,000 jobs behind two busy workers. Contestants without idle workers or without a queue have no figure."},
			{"Burst", "Each contestant has a process of its own. The ideal is jobs × work ÷ workers. Left are goroutines 2.5 idle timeouts after the last job; a bare channel's workers stay by design."},
			{"Sizing", "Jobs arrive in an open loop and are of use only if they end within 200 ms; a full pool refuses. The work changes once. What computes is offered 1.5 times what the processors can do, and 3 times after the change; what waits takes 20 ms at 1,000 a second, then 80 ms; mixed work computes 2 ms and waits as long. What computes lets others run every 100 µs, for the generator shares its process. Fixed sizes are swept in powers of two; one is told before the start, has MinWorkers = MaxWorkers and every other default."},
		},
	},
}

// Notes returns, for each claim, a note on how it was published.
func (f family) Notes() []note {
	var notes []note
	for _, c := range f.Claims {
		if c.Note != "" {
			notes = append(notes, note{c.ID, c.Note})
		}
	}
	return notes
}

// familyOf joins what a declaration says with what is still kept here.
func familyOf(declared ledger.Family) family {
	f := families[declared.ID]
	for _, known := range claims.Families {
		if known.ID == declared.ID {
			f.Family = known
		}
	}
	f.Family.ID, f.Title = declared.ID, declared.Title
	if len(declared.Method) == 0 {
		return f
	}
	f.Behind, f.Grid = declared.Behind, declared.Grid
	for _, s := range declared.Sources {
		f.Sources = append(f.Sources, source(s))
	}
	for _, n := range declared.Method {
		f.Method = append(f.Method, note(n))
	}
	column := func(c ledger.Column) ownFigure { return ownFigure{c.Key, c.Name, formats[c.Format]} }
	for _, c := range declared.Columns {
		f.Figures = append(f.Figures, column(c))
	}
	f.Stacks = stacks{Axis: declared.Stacks.Axis, Total: column(declared.Stacks.Total), Note: column(declared.Stacks.Note), Whole: declared.Stacks.Whole, Steps: declared.Stacks.Steps}
	for _, p := range declared.Stacks.Parts {
		f.Stacks.Parts = append(f.Stacks.Parts, part(p))
	}
	return f
}

var formats = map[string]func(float64) string{
	"": number, "nanos": nanos, "micros": micros, "size": size, "percent": percent, "ratio": ratio, "decimals": decimals,
}

// flat lists the answers as the report showed them before claims had parts.
func flat(decided []results.Claim) []results.OldClaim {
	var out []results.OldClaim
	for _, c := range decided {
		for _, a := range c.Answers {
			id := c.ID
			if a.Part != "" {
				id += "/" + a.Part
			}
			rule := a.RuleText
			if rule == "" {
				rule = a.Rule.Words(a.Unit)
			}
			out = append(out, results.OldClaim{
				ID: id, Title: a.Title, Setup: a.Setup, Verdict: a.Verdict, Measured: a.Measured, Low: a.Low, High: a.High, Unit: a.Unit,
				Published: c.Published, Rule: rule, Why: a.Why, Runs: a.Repeats, NoiseFloor: a.Floor, MoreRuns: a.MoreRuns, Source: c.Source,
			})
		}
	}
	return out
}
