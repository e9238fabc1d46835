package gate

import (
	"math"
	"time"

	"github.com/spillway-go/spillway/internal/places"
)

// usual is the usual time of a kind, for trials.
type usual struct {
	n       int32
	median  float32 // of the ages at which work ended: see age
	slow    float32 // share of the work that took over twice the median
	longest float64 // longest time in which work finished of late, in nanoseconds
}

const (
	usualKnown    = 5                     // ends behind a usual time
	usualMemory   = 2 * time.Minute       // how long a usual time lasts while work is parked, and a longest time
	medianStep    = 2 * agesPerOctave     // step of the median, times the weight of an end
	slowAges      = agesPerOctave         // slow work takes twice the usual time
	overdueTimes  = 8                     // usual times of the quickest kind after which work is overdue
	overdueLeast  = 25 * time.Millisecond // work is not overdue sooner
	overdueAnyway = time.Second           // work is overdue while no usual time is known
	abnormalTimes = 2                     // longest times of its kind from which work is abnormal
)

// end enters the age at which work ended. weight is the weight of an end among the latest, once there
// are many.
func (u *usual) end(at, weight float64) {
	slow := float32(0)
	if u.isSlow(at) {
		slow = 1
	}
	if u.n < serviceSpan {
		u.n++
		weight = 1 / float64(u.n)
	}
	u.slow += float32(weight) * (slow - u.slow)
	switch step := float32(weight * medianStep); {
	case u.n <= usualKnown:
		u.median += (float32(at) - u.median) / float32(u.n)
	case float32(at) > u.median+step:
		u.median += step
	case float32(at) < u.median-step:
		u.median -= step
	}
}

// finished enters the time in which work finished. passed is the time since work of the kind last
// ended.
func (u *usual) finished(elapsed, passed float64) {
	part := passed / float64(usualMemory)
	if part > 1 {
		part = 1
	}
	if u.longest -= (u.longest - elapsed) * part; u.longest < elapsed {
		u.longest = elapsed
	}
}

func (u *usual) isSlow(at float64) bool {
	if u.n < usualKnown {
		return at > ageOf(overdueLeast)
	}
	return at > float64(u.median+slowAges)
}

// overdueAfter is how long work holds its slots until it is overdue.
func (g *Gate) overdueAfter() time.Duration {
	quickest := math.Inf(1)
	for i := range g.service.kinds.list {
		if k := &g.service.kinds.list[i]; k.usual.n >= usualKnown && k.arrivalShare >= places.Rare {
			quickest = min(quickest, float64(k.usual.median))
		}
	}
	if math.IsInf(quickest, 1) {
		return overdueAnyway
	}
	return max(overdueTimes*time.Duration(edge(int(quickest)+1)), overdueLeast)
}
