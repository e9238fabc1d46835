package advice

// The sources, as the claims credit them.
const (
	healthcare = "Stella-Achar-Oiro/healthcare-api-benchmark"
	shapes     = "gsarmaonline/golang-measurements"
	burst      = "iyashjayesh/go-adaptive-pool"
	composite  = "an article on goroutines for a composite user store"
	routes     = "sync.Pool Performance Analysis for Route Package"
)

// Rules are all of them, in the order in which a service is built.
var Rules = []Rule{
	{
		Question: "Goroutines, a semaphore, a worker pool or a limiter?",
		Says:     "Start a goroutine for each piece of work, and bound how many there are. A semaphore does that if you know the number and it does not change. A limiter finds the number, refuses at once what would be late, and says why. A pool of workers bounds likewise, and reuses goroutines, which is hardly more.",
		Rests: []Basis{
			{"B2", "Unbounded goroutines finished more than a third of what a pool finished."},
			{"G12", "For the smallest pieces of work a semaphore has less than half of what a pool gains: there take a pool."},
			{"overload-1", "A limiter without a number stayed below 90 % of what was possible under some load: give it bounds."},
			{"overload-3", "Something that was told the number answered over 5 % more than a limiter without one."},
		},
	},
	{
		Question: "Which pattern for patient-facing services and real-time monitoring?", Source: healthcare,
		Says: "A worker pool with pooled response objects.",
		Rests: []Basis{
			{"H9/cleared", "Do not pool response objects: clearing them was not enough to keep one patient's data out of another's answer."},
			{"H10/allocations", "Leave the responses to the collector: reusing them saves no allocation."},
			{"H10/bytes", "Leave the responses to the collector: reusing them does not save a tenth of the bytes."},
			{"H10/p99", "Do not expect a lower p99 from it: none was seen beyond the noise."},
		},
	},
	{
		Question: "Which pattern for internal tools?", Source: healthcare,
		Says: "A worker pool, without pooled objects.",
		Rests: []Basis{
			{"H8/naive", "Its neighbours on the database do not need it: an unbounded service did not starve them."},
			{"H8/pool", "It does not spare its neighbours on the database: they did less than 90 % of what they do alone."},
			{"H11/connections", "Bound the connections themselves: workers held more of them than there are workers."},
		},
	},
	{
		Question: "Which pattern for batch jobs?", Source: healthcare,
		Says: "A worker pool with a larger queue, because with a short one it refuses most of what comes at once.",
		Rests: []Basis{
			{"H2/refused", "Measure the share that is refused with your own numbers of clients and requests: it is not the published one."},
		},
	},
	{
		Question: "When is a goroutine for every request enough?", Source: healthcare,
		Says: "In prototypes, scripts and tools with known bounds: it is four to five times as fast as a small pool as long as nothing is scarce, and unbounded when something is.",
		Rests: []Basis{
			{"H1/throughput", "It is not four to five times as fast as the small pool at low load."},
			{"H6/naive", "It did not run the database out of connections."},
			{"H8/naive", "It did not starve its neighbours."},
		},
	},
	{
		Question: "How many workers, and how long a queue?", Source: healthcare,
		Says: "For work that waits two to four workers for each core and a queue of five for each worker; for work that computes as many workers as cores and a queue of two for each.",
		Rests: []Basis{
			{"H5/sqlite", "Over SQLite the rule's size is not near the best: measure the smallest after which goodput no longer rises, or let a limiter find it."},
			{"H5/postgres", "Over PostgreSQL the rule's size is not near the best: the number depends on how much the store bears, not on the cores."},
			{"H5/cpu", "For look-ups that compute, the rule's size is not near the best."},
		},
	},
	{
		Question: "How much does a pool of a known size get done?",
		Says:     "Workers times the share that succeeds, divided by the mean latency of the store, whatever is offered. Count refusals apart: they answer nobody.",
		Rests:    []Basis{{"H-law", "The law did not predict the pool's goodput: look for what else it waits for."}},
	},
	{
		Question: "Hand small pieces of work to goroutines?", Source: shapes,
		Says:  "No: nearly all of the time is synchronization, a hundred times the work or more. Hand over batches.",
		Rests: []Basis{{"G1", "With a buffered channel it is less than a hundred times the work. It is still many times: hand over batches."}},
	},
	{
		Question: "A goroutine for each piece of work, or a pool?", Source: shapes,
		Says: "A pool of about GOMAXPROCS workers: it is faster and allocates nothing. One of a thousand workers is slower than goroutines without a channel.",
		Rests: []Basis{
			{"G3/faster", "A pool of GOMAXPROCS workers is not faster."},
			{"G3/allocs", "A pool of GOMAXPROCS workers allocates."},
			{"G4/loses", "A thousand workers are no slower than goroutines without a channel: their number matters less than the channel's buffer."},
		},
	},
	{
		Question: "One channel for all workers, or one for each?", Source: shapes,
		Says:  "One for each worker.",
		Rests: []Basis{{"G5", "Keep the shared channel, which is simpler and balances by itself: one for each worker was not a tenth faster with every buffer."}},
	},
	{
		Question: "How many goroutines for work that computes?", Source: shapes,
		Says: "About GOMAXPROCS, by a pool, a semaphore or a dispatcher alike, and many more are slower.",
		Rests: []Basis{
			{"G6/pool", "For a pool another bound was better by more than 5 %."},
			{"G6/semaphore", "For a semaphore another bound was better by more than 5 %."},
			{"G6/dispatch", "For a dispatcher another bound was better by more than 5 %."},
			{"G6/many", "Many more hardly harm: 128 times as many were not 5 % slower."},
			{"G6/alike", "The ways differ by more than 5 % at an equal bound: measure yours."},
		},
	},
	{
		Question: "Pool objects or goroutines first?", Source: shapes,
		Says: "Objects, once concurrency is bounded.",
		Rests: []Basis{
			{"G9/small", "Not small ones: their reuse saved no more than that of goroutines."},
			{"G9/large", "Not even large ones: their reuse saved no more processor time than that of goroutines."},
		},
	},
	{
		Question: "Does fasthttp lead because of its pool of connection workers?", Source: shapes,
		Says: "Hardly: that is 10 to 15 % of the lead. Pooled request state, then a byte API, then the parser are worth more.",
		Rests: []Basis{
			{"G7/workers", "The pool's share of the lead is another one: see the figure."},
			{"G7/order", "The savings rank otherwise: measure before you copy one of them."},
		},
	},
	{
		Question: "What if far more comes than can be done?", Source: burst,
		Says: "Bound it: a goroutine for each job takes tens of times the memory, or is killed, and finishes a fraction of the jobs.",
		Rests: []Basis{
			{"B1", "A goroutine for each job did not take ten times the memory, and was not killed for it."},
			{"B2", "A goroutine for each job finished more than a third of what the pool finished."},
		},
	},
	{
		Question: "Does a full pool refuse at once?", Source: burst,
		Says: "Yes: most of a burst is refused, each job within a millisecond.",
		Rests: []Basis{
			{"B5/refused", "Less than half was refused."},
			{"B5/prompt", "The published pool waits before it refuses: refuse without waiting when the queue is full."},
		},
	},
	{
		Question: "Without a number for the limit?",
		Says:     "Put a limiter in front that finds it: it answers at least 90 % of what is possible under every load, and nothing that was told the number answers over 5 % more.",
		Rests: []Basis{
			{"overload-1", "It stayed below 90 % of what was possible under some load: give it bounds."},
			{"overload-3", "Something answered over 5 % more: if you know the number, and it does not change, set it."},
		},
	},
	{
		Question: "Callers retry what was refused?",
		Says:     "Send Retry-After from measurement, spread out, and let clients keep a budget: the goodput stays and no wave comes back.",
		Rests: []Basis{
			{"admission-1", "With retries the goodput fell under 95 % of the capacity."},
			{"admission-3", "The retries came back in waves: spread Retry-After more."},
		},
	},
	{
		Question: "A worker pool, or a bare channel?",
		Says:     "Where jobs compute, a pool that counts, refuses and drains takes no longer than the best of the others. Take it for that, not for speed.",
		Rests: []Basis{
			{"pool-5/short", "For jobs of a microsecond it takes longer than the best of the others: take a bare channel, and do without."},
			{"pool-5/long", "For jobs of 20 µs it takes longer than the best of the others."},
		},
	},
	{
		Question: "Which pool for objects?",
		Says:     "sync.Pool where the load is steady. Where bursts follow idle gaps, one that remembers the recent peak finds the objects again and leaves no trace of an outlier.",
		Rests: []Basis{
			{"reuse-1/hits", "It did not find the objects again: keep sync.Pool."},
			{"reuse-1/strong", "It held more than the recent peak needed: keep sync.Pool."},
			{"reuse-4", "One outlier stayed in memory: bound the size of what is put back."},
		},
	},
	{
		Question: "Pool the context of a request?", Source: routes,
		Says: "Yes: over typical traffic it is 5.5 % faster and saves an allocation.",
		Rests: []Basis{
			{"R6", "Not for speed: over typical traffic the gain is not 3 to 8 %."},
			{"R7/allocs", "It does not save exactly one allocation everywhere."},
		},
	},
	{
		Question: "Typed routes, or handlers by hand?",
		Says:     "Typed routes: they take at most 5 % more than the same by hand.",
		Rests: []Basis{
			{"route-3/time", "They take over 5 % more than the same by hand: write the hottest ones by hand."},
			{"route-3/allocs", "They allocate more often than the same by hand."},
		},
	},
	{
		Question: "Ask two sources one after the other, or at once?", Source: composite,
		Says: "One after the other where each takes less than a millisecond; at once where they are slow, which halves the time.",
		Rests: []Basis{
			{"F1", "At 50 ms each, asking at once did not halve the time."},
			{"F4", "Asking at once gained something below a millisecond though no processor was free: measure, or let fanout choose by itself."},
		},
	},
	{
		Question: "What does asking at once cost?", Source: composite,
		Says: "Four more allocations and some 270 bytes a call.",
		Rests: []Basis{
			{"F3/allocations", "It costs another number of allocations: see the figure."},
			{"F3/bytes", "It costs another number of bytes: see the figure."},
		},
	},
}
