package report

import (
	"strings"

	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/ledger"
)

// families is what a report says about the experiments whose declarations do not say it
// yet, by id.
var families = map[string]ledger.Family{
	"G7": {
		Sources: []ledger.Source{{
			Name: "gsarmaonline/golang-measurements",
			URL:  "https://github.com/gsarmaonline/golang-measurements",
			What: "and the article that goes with it",
		}},
		Columns: []ledger.Column{
			{Key: "cpu_us", Name: "processor time for a request", Format: "micros"}, {Key: "share", Name: "share of the lead, %", Format: "decimals"},
			{Key: "allocs", Name: "allocations", Format: "decimals"}, {Key: "bytes", Name: "allocated", Format: "size"}, {Key: "peak_rss", Name: "peak RSS", Format: "size"},
		},
		Grid: "every other set",
		Stacks: ledger.Stacks{
			Axis:  "µs of processor time for a request",
			Total: ledger.Column{Key: "cpu_us", Format: "micros"},
			Note:  ledger.Column{Key: "share", Name: "% of the lead", Format: "decimals"},
			Parts: []ledger.StackPart{
				{Key: "floor_us", Name: "reads and writes alone", Class: "s0"}, {Key: "above_us", Name: "the server's own", Class: "s1"},
				{Key: "rest_high_us", Name: "net/http − small server, no saving", Class: "rejected"},
				{Key: "pooled_state_us", Name: "pooled state", Class: "s2"}, {Key: "byte_API_us", Name: "byte API", Class: "s3"}, {Key: "own_parser_us", Name: "own parser", Class: "s4"},
				{Key: "connection_workers_us", Name: "connection workers", Class: "s5"}, {Key: "no_background_read_us", Name: "no background read", Class: "s6"},
				{Key: "one_write_buffer_us", Name: "one write buffer", Class: "s7"},
				{Key: "rest_low_us", Name: "small server, every saving − fasthttp", Class: "error"},
			},
			Whole: "net/http", Steps: 2,
		},
		Method: []ledger.Note{
			{Title: "What is measured", Text: "Processor time of the server's process, user and system, as the system reports it, over the requests it answered. Time on the clock would measure the client and the network too. Each server is a process of its own and so is the client, which writes fixed bytes, parses the first answer of a connection and compares the others. All servers are there from the beginning and take short turns in random order; the mean over the turns of a repeat counts, the first turn is a warm-up."},
			{Title: "The same request", Text: "A GET with seven fields; every handler cuts the id out of the path, echoes one field and writes a body of some 80 bytes with its type. The raw floor reads and writes as many fixed bytes and understands none."},
			{Title: "All orders", Text: "What a saving is worth depends on the others: a reused request saves less where strings are allocated anyway. So the small server runs with every set of savings, and a saving's share is what it takes off in the mean of all orders in which they can be added, in per cent of what fasthttp needs less than net/http in the same repeat. Added to none and taken from all are the ends of that, shown apart."},
			{Title: "What stands in its place", Text: "Without a saving the small server does what net/http does, with the same library where it is public: http.ReadRequest, url, http.Header, a context, a goroutine that reads ahead, seven deadlines, two buffers. It is no product and has no limits on time."},
			{Title: "What cannot be switched", Text: "fasthttp's parser and net/http's goroutine for each connection. fasthttp loses its reuse by a request, an answer and a new context; net/http's connections are handed to workers one at a time, which bounds them and saves nothing."},
			{Title: "What is explained", Text: "The lead is, in every repeat: what net/http needs beyond the small server without savings, the share of each saving, and what the small server with every saving needs beyond fasthttp. Explained is the lead without the sizes of the two parts that are no saving's share. They may be below 0, and are taken off all the same: a small server that is too cheap at both ends has the right difference and the wrong reasons."},
		},
	},
	"R": {
		Sources: []ledger.Source{{Name: "a benchmark report, \"sync.Pool Performance Analysis for Route Package\"", What: "whose layer is rendered here from its description"}},
		Columns: []ledger.Column{
			{Key: "cpu_ns", Name: "processor time for a request, net", Format: "nanos"}, {Key: "allocs", Name: "allocations, net", Format: "decimals"}, {Key: "bytes", Name: "allocated, net", Format: "size"},
			{Key: "wall_ns", Name: "time on the clock for a request, net", Format: "nanos"},
			{Key: "cpu_ns_total", Name: "processor time with the harness", Format: "nanos"}, {Key: "cpu_ns_harness_share", Name: "of it the harness, %", Format: "decimals"}, {Key: "allocs_total", Name: "allocations with the harness", Format: "decimals"},
			{Key: "behind", Name: "Spillway's time/this one's", Format: "ratio"},
			{Key: "pause_p99_us", Name: "p99 of the collector's pauses, µs"}, {Key: "pauses", Name: "pauses"},
		},
		Behind: "behind",
		Method: []ledger.Note{
			{Title: "What is measured", Text: "Processor time of the contestant's process, user and system, its collector included, over the requests of a turn. Every contestant is a process of its own; all are there from the beginning of a repeat and take turns in random order, the first of which are a warm-up. A repeat's figure is the mean of the middle half of the turns. Time on the clock counts in the parallel scenario of the published shape only, where the claim is about contention."},
			{Title: "Net of the harness", Text: "Request, body reader and response writer are used again; before each request the request is copied from a template, since muxes and handlers leave things in it. What that costs with a handler that does nothing (the row \"nothing\") is subtracted. The published harness makes a request and a httptest recorder for each iteration; it is run with the same builds, and the share of it is a figure."},
			{Title: "Two builds", Text: "A typed layer over gin in the published shape: a function of a request and a response type, names, descriptions, middleware, binding from path, query and body by content type, Server-Timing for decoding, answers that choose their status or are a file or a stream. One build takes its context from a sync.Pool, cleared when it is given back, and nothing else differs. The published builds differed elsewhere: the pooled one had lost a Sprintf, which is the third row, and what the set-up with the published harness judges. The fresh build runs twice; what it differs from itself is noise."},
			{Title: "The form row", Text: "With form tags that work, a form is bound and answered 201. The published type appears to have had none: gin then looks for fields by their Go names, finds none, and what is required is missing. The row without tags measures such a 400."},
			{Title: "The traffic", Text: "60 % JSON, 20 % GET, 10 % form, 5 % large, 5 % parallel, averaged as the ratio of the mean times and as the mean of the ratios."},
			{Title: "The same work for all", Text: "Path, query and body are bound, seven fields are checked, everything that was sent is in the answer; a test sends good and bad requests to all and compares status and answer. By hand: net/http's mux with checks written out, the first fault told; with go-playground/validator, all faults told; the same on chi; gin's own binding, which brings the validator; echo's binding with it. Bodies are bounded to 1 MiB and unknown JSON members refused by all."},
			{Title: "What differs all the same", Text: "Spillway also refuses unknown form fields and query parameters, repeated members and more than one document, and lists every fault with a pointer. huma answers faults with 422, reads no urlencoded form (it has no figure there) and takes a body without a content type for JSON; with it, as with the hand-written handlers, a wrong type ends the list of faults. fuego takes every content type that it does not know for JSON and writes Server-Timing, as only \"spillway, Server-Timing\" does otherwise."},
			{Title: "fiber", Text: "It is no net/http handler: its request is fasthttp's, filled again each time, which the row \"nothing\" of its own contest does as well. Its figures do not stand beside the others': a server on fasthttp saves elsewhere, see experiment G7, and its strings are valid only until the handler returns."},
			{Title: "Version 2 of encoding/json", Text: "In a build with GOEXPERIMENT=jsonv2, the hand-written handlers call version 2 and the frameworks still call version 1, which is then implemented by version 2."},
		},
	},
	"overload": {
		Method: []ledger.Note{
			{Title: "What is scarce", Text: "A database with a knee, in front of SQLite: ten lookups at a time run at full speed, 20 to 60 ms each. Beyond that they share it, and the sharing costs: with c of them running the total falls to √(10/c), so that forty do half of what ten do. It refuses nothing and reports nothing. A caller that leaves takes its lookup along."},
			{Title: "The load", Text: "An open loop with Poisson arrivals: clients that do not wait for each other. The capacity is measured first, in a closed loop around the database's slots. Every request waits a second and says so in a header that becomes the context's deadline; every fifth is critical and says so too. Latency counts from the intended start. Each measurement follows a warm-up under the same load. One whose generator sent late, because the machine was busy elsewhere, is made again, at most twice."},
			{Title: "What the contestants know", Text: "semaphore, semaphore-try and workerpool were given the size of the database, which an operator has to guess; semaphore-4x is the same guess, four times off. failsafe and spillway have no such number. semaphore waits as long as the deadline allows, first come, first served; semaphore-try refuses at once."},
			{Title: "Side by side", Text: "Up to the capacity all contestants run at the same time, each in its own process, up to twice the capacity half of them; beyond that each runs alone. Nearly all of a lookup is waiting, so that they do not compete for processors."},
		},
	},
	"admission": {
		Method: []ledger.Note{
			{Title: "The service", Text: "One handler that waits for a backend of ten slots, 20 to 60 ms a request, behind admissionhttp with limiter.Config{}, in a process of its own. N-way: ten at a time, others wait in a hidden queue, and what is in a slot runs to its end also when its client has left. Degrading: all run at once, and with c of them the total falls to √(10/c); work ends when its client leaves. The capacity is measured in a closed loop without a limit, in every repeat."},
			{Title: "Where retries are counted", Text: "200 clients, each with a transport of admissionhttp/client and so with a budget and a memory of its own, send three times the capacity between them, by an open loop with Poisson arrivals. A request has five seconds, its retries included. Arrivals are counted by the service, retries included, in steps of 100 ms from the first refusal on. Goodput is what was answered within the measurement, and the load goes on after it, so that nothing is served by an idle backend later. A request that a client held back itself counts as refused."},
			{Title: "Clients that leave", Text: "Every third client closes its connection after half of the mean service time. What those that stay can get is the capacity without what the others use of it, where each of them is admitted: a third of the clients uses half of its work on the degrading backend, all of it in a slot of the N-way one."},
			{Title: "A dry run", Text: "Requests without retries, that leave after a second, come slowly until twice the capacity, once in a dry run and once for real. Of each priority the share that would have been refused is compared with the share that was refused, or left while it waited. On the degrading backend the dry run sees the collapse that a limit prevents: there its report has to say that the estimate is unsafe."},
			{Title: "Hostile clients", Text: "From a third process: connections that stay idle (a third of the files that a process may open, at most 50,000), 200 that send a header a second, headers of 1 MB, bodies without an end and bodies of two bytes a second, clients that close their half before the answer or within the request, and HTTP/2 streams that are reset as soon as they are opened. What they send is bounded, some megabytes and two thousand streams a second. Probes come on a new connection each, 50 a second, and their time counts from the intended start. Known clients have a credential and are critical. A slow body holds a slot until http.Server.ReadTimeout, here ten seconds: that is what the known clients lose."},
			{Title: "A busy machine", Text: "A run whose clients sent late (p99 above 20 ms) is made again, once. What is sent late comes all at once: on a busy machine arrivals have peaks, and probes are slow, that are not the service's."},
		},
	},
	"pools": {
		Columns: []ledger.Column{
			{Key: "ns", Name: "time for each", Format: "nanos"}, {Key: "allocs", Name: "allocations for each", Format: "decimals"}, {Key: "behind", Name: "Spillway's time/this one's", Format: "ratio"},
			{Key: "worker_bytes", Name: "of an idle worker", Format: "size"}, {Key: "job_bytes", Name: "of a queued job", Format: "size"},
			{Key: "finish", Name: "time/ideal", Format: "ratio"}, {Key: "cpu_seconds", Name: "processor s", Format: "decimals"}, {Key: "peak_rss", Name: "peak RSS", Format: "size"}, {Key: "peak_goroutines", Name: "peak goroutines"}, {Key: "left", Name: "workers left"},
		},
		Behind: "behind",
		Method: []ledger.Note{
			{Title: "In turns", Text: "The contestants of one table, all numbers of workers included, take turns in one process, in a new order each round. Before each turn the contestant is made, warmed and the heap collected; afterwards it is ended. Ratios are taken within a round, of which the median counts; the verdict's interval is over repeats. Spillway runs twice: its difference from itself is the noise floor. Every round of every contestant is in runs.jsonl."},
			{Title: "1→2", Text: "The columns are producers→workers. A producer is a goroutine that submits; with more than one, all begin at the same moment."},
			{Title: "The queue", Text: "Every bounded queue has the same number of places, 1,024 unless the command says otherwise. A bare channel's figures move several times over with that number. Spillway counts, measures waits and catches panics while it is compared with a channel that does not."},
			{Title: "Contestants without a queue", Text: "semaphore, errgroup, ants and conc make the submitter wait until a worker is free; gammazero's queue has no bound, so its submitters never wait. tunny only calls and appears where results are waited for; conc and gammazero cannot refuse."},
			{Title: "When a job counts", Text: "The end of a job is not reported, except for the last one of each producer: a counter that all jobs share would cost as much as what is measured. A turn ends when those have ended."},
			{Title: "Refusals", Text: "Workers and queue are full of jobs that do not end. Every submission must be refused, or there is no figure; Spillway's own count must agree. The bare try-send counts nothing."},
			{Title: "Memory", Text: "Live heap and stacks after two collections, divided by 1,000 workers that have run once, and by 100,000 jobs behind two busy workers. Contestants without idle workers or without a queue have no figure."},
			{Title: "Burst", Text: "Each contestant has a process of its own. The ideal is jobs × work ÷ workers. Left are goroutines 2.5 idle timeouts after the last job; a bare channel's workers stay by design."},
			{Title: "Sizing", Text: "Jobs arrive in an open loop and are of use only if they end within 200 ms; a full pool refuses. The work changes once. What computes is offered 1.5 times what the processors can do, and 3 times after the change; what waits takes 20 ms at 1,000 a second, then 80 ms; mixed work computes 2 ms and waits as long. What computes lets others run every 100 µs, for the generator shares its process. Fixed sizes are swept in powers of two; one is told before the start, has MinWorkers = MaxWorkers and every other default."},
		},
	},
}

// legacy adds to a declaration what is still kept here.
func legacy(declared ledger.Family) ledger.Family {
	if len(declared.Claims) > 0 {
		return declared
	}
	f, kept := families[declared.ID]
	if !kept {
		f = declared
	}
	f.ID, f.Title = declared.ID, declared.Title
	for _, known := range claims.Families {
		if known.ID != f.ID {
			continue
		}
		for _, c := range known.Claims {
			f.Claims = append(f.Claims, ledger.Claim{ID: c.ID, Note: c.Note})
		}
		for _, r := range known.Recommendations {
			advice := ledger.Recommendation{For: r.For, Use: r.Use}
			for _, id := range r.RestsOn {
				id, _, _ = strings.Cut(id, "/")
				advice.RestsOn = append(advice.RestsOn, id)
			}
			f.Recommendations = append(f.Recommendations, advice)
		}
	}
	return f
}
