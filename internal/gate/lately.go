package gate

import (
	"math"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/internal/refusal"
)

// There may be a gate for each of many keys, most of which seldom have work. What such a gate does not need
// yet is not allocated: until then a gate refers to a value without entries, which all gates share
// and nobody changes. A life table is nil for as long.
var (
	unmeasured = lately{settles: demandSettle, bears: unbearable}
	noShortage = shortage{floor: floor{every: Floor - 1}}
)

var unbearable = [levels]float64{math.Inf(1), math.Inf(1), math.Inf(1), math.Inf(1)}

// lately is what the windows of time have measured: see Gate.roll. The first window allocates it.
type lately struct {
	fast, few, many, long [levels]float64 // slots asked for per second, over 0.3 s, 0.3 s or longer, 1.5 s or longer (see fewPieces), and 10 s
	refusedShare          float64         // share of arrivals that were refused, without budget; over 10 s
	vainShare             float64         // share of arrivals that were refused or lost, over 1.5 s
	cost                  average         // mean number of slots that an arrival asks for
	settles               time.Duration   // time before which a rate is a guess
	// levels are of the arriving work of each level and of all levels, high is the mean of the 95 %
	// quantiles of all kinds. Each kind is weighted by its arrivals: a kind that is refused ends seldom,
	// but must count in full.
	levels [levels + 1]occupancy
	high   average
	booked [levels]float64 // slots of refused callers that may come back
	bears  [levels]float64 // how long work of a level can wait: see kinds.survey
	best   [levels]float64 // best recent service rate, in slots per nanosecond
}

// measureIn makes to the place of the measurements.
func (g *Gate) measureIn(to *lately) { g.lately, g.demand.lately, g.service.lately = to, to, to }

// shortage is what a gate needs once some work finds no free slot. The first refusal, waiter or trial
// allocates it.
type shortage struct {
	queues          [levels]queue
	large           int // waiters that cost more than one slot
	granted         int // waiters that were granted and whose callers have not answered yet
	floor           floor
	waits           histogram.Histogram // waits of the work that was queued
	aside           [2]line             // tracked work that is paused, and that is parked, in the order of getting there
	parking         parking
	back            [levels]float64 // slots of refused work, until booked
	rejected, would [levels][refusal.Reasons]uint64
}

// beginShortage is called before the first change of g.shortage.
func (g *Gate) beginShortage() {
	if g.shortage == &noShortage {
		first := noShortage
		g.shortage = &first
	}
}
