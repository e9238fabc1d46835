package limit

// aim is what a change of the limit has to be worth.
type aim struct {
	jobs    bool    // done in time are what counts: latency may rise for them, and what misses its deadline is lost
	follows float64 // a raise is kept if latency follows by less than one part in so many
	falls   float64 // a cut is kept if latency falls by more than this share of it
	tells   float64 // the share of a change that the cohorts of its trial tell from nothing
	drowned float64 // the share of the limit that is left when most miss their deadlines
}

var (
	forLatency = aim{follows: 3, falls: 0.5, tells: 0.5, drowned: 0.5}
	// Work that computes a little and waits a lot has a soft knee: twice as much at
	// once does a third more, and takes half as long again.
	forJobs = aim{jobs: true, follows: 1.5, falls: 0.75, tells: 0.15, drowned: 0.7}
)

// NewAdaptiveForThroughput returns the law of who wants jobs done rather than each
// of them done soon: it goes on where latency follows a raise by up to two thirds,
// and comes down where it follows a cut by more than three quarters, or where
// deadlines take what a raise gained.
func NewAdaptiveForThroughput() *Adaptive { return newAdaptive(forJobs) }
