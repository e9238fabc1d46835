package burst

import "github.com/spillway-go/spillway/lab/ledger"

var family = ledger.Family{
	ID:     "B",
	Title:  "What a burst of a million jobs a second does to unbounded goroutines and to bounded pools",
	Source: "iyashjayesh, github.com/iyashjayesh/go-adaptive-pool and its article on a million requests a second",
	Claims: append(published, goals...),
	Sources: []ledger.Source{{
		Name: "iyashjayesh/go-adaptive-pool",
		URL:  "https://github.com/iyashjayesh/go-adaptive-pool",
		What: "and the article that goes with it",
	}},
	Method: []ledger.Note{
		{Title: "Where latency begins", Text: "The published latency begins when a job starts, so the time in a queue of 100,000 is not in it. Here it begins with the submission. Jobs that one generator submits together share that moment."},
		{Title: "Equal load", Text: "The published naive run sleeps 10 µs before each submission and stops itself above 12 GB. Here every contestant is offered the same by the same generators, in the contestant's own process as published, and a memory cap kills it from outside. A generator that was late submits all that has become due, so that the rate is offered or the run says that it was generator-bound. A submission to the published shape parks its generator until it is accepted or its timeout fires. Jobs finished are compared only if both were offered the rate."},
		{Title: "Watched from outside", Text: "A process with a hundred thousand runnable goroutines cannot report its state: the answer would wait to be scheduled, and a killed process gives none. Contestants count into memory that they share with the lab, without locks; the lab reads it, and memory, processor time and switches from the system. The counts of a killed contestant are those at its end."},
		{Title: "Peaks", Text: "The published \"peak RAM\" is what the runtime had reserved from the system, once a second, and the \"peak goroutines\" of the pool is their number at the end. Here memory is the kernel's own peak of the resident set, goroutines are looked at every ten milliseconds."},
		{Title: "What is work", Text: "One job in 16 takes its buffer under the processor clock of its thread; so does one batch of submissions in 16, where a submission cannot park. What the collector makes an allocating job do for it counts as collection. Page faults on fresh memory are in the work: touching the pages is the work."},
		{Title: "A shorter burst", Text: "The published pool starts with 100 workers and grows by a quarter a second, so that it needs 18 seconds of a full queue for its 5,000: a shorter burst shows its growth, not its size. Ours allocate their buffers and find their sizes in the first seconds, so that a short burst shows them too slow and too small. What was offered less than the published 30 seconds therefore decides nothing; its figures are shown."},
	},
}
