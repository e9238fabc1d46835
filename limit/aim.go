package limit

// aim defines which changes of the limit are worth keeping.
type aim struct {
	jobs       bool    // maximize jobs done in time; latency may rise
	raiseShare float64 // a raise is kept if latency rises by less than this share of the raise
	resolution float64 // smallest effect a trial must detect, as a share of the change
	shed       float64 // largest share of what runs that a shedding step leaves
}

var (
	// With a raiseShare of a half, one trial in eight raised a limit that was already slightly too
	// high, and the limit drifted.
	forLatency = aim{raiseShare: 1. / 3, resolution: 0.5, shed: 0.5}
	// Work that computes little and waits a lot has a soft knee: twice the concurrency raises
	// throughput by a third and latency by half.
	forJobs = aim{jobs: true, raiseShare: 2. / 3, resolution: 0.15, shed: 0.7}
)

// NewAdaptiveForThroughput returns the law of [NewAdaptive] for callers who prefer the throughput of jobs to the
// latency of each job. The law keeps a raise if latency rises by up to two thirds of the raise.
// It also lowers the limit if missed deadlines cost the throughput that a raise gained.
func NewAdaptiveForThroughput() Law { return newAdaptive(forJobs) }
