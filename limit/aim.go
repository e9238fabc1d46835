package limit

// aim is what a change of the limit has to be worth.
type aim struct {
	jobs       bool    // done in time are what counts: latency may rise for them
	raiseShare float64 // a raise is kept if latency follows by less than this share of it
	cutShare   float64 // a cut is kept if latency falls by more than this share of it
	resolution float64 // the share of a change that a trial must be able to tell from nothing
	shed       float64 // the share of the limit that is left, at most, when much work is lost
}

var (
	// At half, a limit slightly above the truth was raised further in one trial of
	// eight, and drifted.
	forLatency = aim{raiseShare: 1. / 3, cutShare: 0.5, resolution: 0.5, shed: 0.5}
	// Work that computes a little and waits a lot has a soft knee: twice as much at
	// once does a third more, and takes half as long again.
	forJobs = aim{jobs: true, raiseShare: 2. / 3, cutShare: 0.75, resolution: 0.15, shed: 0.7}
)

// NewAdaptiveForThroughput returns the law for callers that want jobs done rather
// than each of them done soon. It goes on where latency follows a raise by up to two
// thirds, and comes down where it follows a cut by more than three quarters, or where
// deadlines take what a raise gained.
func NewAdaptiveForThroughput() *Adaptive { return newAdaptive(forJobs) }
