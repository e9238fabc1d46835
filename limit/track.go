package limit

import (
	"fmt"
	"math"
	"slices"
	"time"
)

const (
	mostSlots      = 100_000 // the highest limit that a law finds; a fixed limit may be higher
	firstPublished = 20      // the first limit of the published laws
	mostPublished  = 1000    // the highest limit of the published laws
)

// track is a limit that moves within bounds and keeps the reason of its last change. The published
// laws and the passive one have a track; the adaptive law sets its limit itself.
type track struct {
	claimed
	value, most float64
	why         string
}

func newTrack(initial, most int) track {
	return track{value: float64(initial), most: float64(most)}
}

// Limit returns how many slots may be in use now.
func (t *track) Limit() int { return max(1, int(t.value)) }

// Why returns the reason of the last change.
func (t *track) Why() string { return t.why }

// move sets the limit, clamped to its bounds, and records the reason.
func (t *track) move(value float64, why string) {
	if math.IsNaN(value) {
		return
	}
	from := t.Limit()
	t.value = min(max(value, 1), t.most)
	if t.Limit() != from {
		t.why = why
	}
}

// comparison formats two latencies in nanoseconds for comparison by people.
func comparison(elapsed, instead float64) string {
	return fmt.Sprintf("%v against %v", rounded(elapsed), rounded(instead))
}

func rounded(ns float64) time.Duration {
	d := time.Duration(min(ns, float64(math.MaxInt64/2)))
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(10 * time.Nanosecond)
}

// latencyOf is the latency of a sample in nanoseconds. It is at least 1, so ratios and logarithms are
// finite.
func latencyOf(s Sample) float64 { return max(1, float64(s.End-s.Start)) }

// busy reports whether at least half of the limit was in use when a piece of work ended. With
// fewer slots in use, success does not confirm the limit, and the limit does not grow.
func busy(load Load, limit float64) bool {
	return load.Queued > 0 || 2*float64(load.InFlight+1) >= limit
}

// checkNumber fills in and checks a number of a law's configuration.
func checkNumber(law, name string, v *float64, preset, lowest, most float64) error {
	if *v == 0 {
		*v = preset
	}
	if !(*v >= lowest && *v <= most) { // NaN as well
		return fmt.Errorf("limit: %s: %s is %v, want %v to %v, or 0 for %v", law, name, *v, lowest, most, preset)
	}
	return nil
}

// window gathers samples until they are enough to estimate the latency of each class.
type window struct {
	began     time.Duration
	sum, n    [Classes]float64 // latencies and number of the successes
	total     int              // successes and signs of overload
	overloads int
	busy      int
	started   bool
}

// few is the least number of samples of a class for a meaningful mean.
const few = 10

func (w *window) add(s Sample, busy bool) {
	if !w.started {
		*w = window{began: s.End, started: true}
	}
	switch s.Outcome {
	case Success:
		k := s.Class % Classes
		w.sum[k] += latencyOf(s)
		w.n[k]++
	case Deadline, Overload:
		w.overloads++
	default:
		return // no information about load
	}
	w.total++
	if busy {
		w.busy++
	}
}

// forget drops the times of a class.
func (w *window) forget(class uint8) { w.sum[class], w.n[class] = 0, 0 }

// mostlyBusy reports whether half of the samples or more ended while busy.
func (w *window) mostlyBusy() bool { return 2*w.busy >= w.total }

// overloaded reports whether at least a tenth of the work ended in overload. Then the latencies of
// the rest are misleadingly low.
func (w *window) overloaded() bool { return w.overloads > 0 && 10*w.overloads >= w.total }

// classes calls f with the mean latency and the number of samples of each class that has enough
// samples.
func (w *window) classes(f func(k int, mean, n float64)) {
	for k, n := range w.n {
		if n >= few {
			f(k, w.sum[k]/n, n)
		}
	}
}

// sufficient reports whether the window has enough samples of a class or enough signs of overload.
func (w *window) sufficient() bool {
	return w.overloads >= few || slices.Max(w.n[:]) >= few
}
