package debugpage

import (
	"iter"
	"math"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/limit"
)

const (
	// interval is the time between updates of the stream, and the step of charts.
	interval = time.Second
	// fresh is how long one look at the limiters serves every reader.
	fresh = interval * 9 / 10
	// kept is the number of samples kept for a limiter: two minutes.
	kept = 120
	// recent is the period of figures "a second" and of the state in one word.
	recent = 10 * time.Second
)

// watch is the history of one limiter. Looks come once an interval while the limiter is used or the page is
// open. Between two looks that are further apart nothing came.
type watch struct {
	created time.Time // the limiter was created at or before this time
	now     picture
	samples []sample   // oldest first, none older than kept intervals
	byKind  []countsAt // oldest first, none older than kept intervals
}

// sample is one look. Its histograms hold the values recorded since the previous look. They are nil
// in the first look.
type sample struct {
	picture
	at            time.Time
	wait, service *histogram.Histogram
}

// add records a look. Looks of the stream and of single requests count alike.
func (w *watch) add(now time.Time, p picture) {
	s := sample{picture: p, at: now}
	if n := len(w.samples); n > 0 && now.Sub(w.samples[n-1].at) < kept*interval { // else nobody knows when within that time
		s.wait, s.service = since(w.now.QueueWait, p.QueueWait), since(w.now.Service, p.Service)
	}
	w.now = p
	s.QueueWait, s.Service, s.Leaks, s.ByKind = nil, nil, nil, nil // w.now has them
	for _, d := range p.Decisions {
		if current := now.Add(-d.At); current.Before(w.created) {
			w.created = current
		}
	}
	w.samples = append(w.samples, s)
	drop := 0
	for now.Sub(w.samples[drop].at) >= kept*interval {
		drop++
	}
	w.samples = append(w.samples[:0], w.samples[drop:]...)
	w.addKinds(now, p.ByKind)
}

// covers is how long ago the oldest sample was.
func (w *watch) covers() time.Duration { return w.samples[len(w.samples)-1].at.Sub(w.samples[0].at) }

// endedLately counts the ends of the last ten seconds by outcome, or of a longer time if they are few.
func (w *watch) endedLately() map[limit.Outcome]uint64 {
	lately := map[limit.Outcome]uint64{}
	for _, d := range []time.Duration{recent, 3 * recent, kept * interval} {
		before, _ := w.from(d)
		if before == nil {
			continue
		}
		all := uint64(0)
		for o, n := range w.now.Ended {
			lately[o] = minus(n, before.Ended[o])
			all += lately[o]
		}
		if all >= manyEnds {
			break
		}
	}
	return lately
}

// from returns the oldest sample of the last d, and its age relative to the latest sample. It
// returns nil if there is no sample before the latest.
func (w *watch) from(d time.Duration) (*sample, time.Duration) {
	n := len(w.samples)
	for i := range max(n-1, 0) {
		if age := w.samples[n-1].at.Sub(w.samples[i].at); age <= d+interval/2 {
			return &w.samples[i], age
		}
	}
	return nil, 0
}

// times adds up the samples' histograms.
func (w *watch) times() (wait, service *histogram.Histogram) {
	wait, service = new(histogram.Histogram), new(histogram.Histogram)
	for i := range w.samples {
		if s := &w.samples[i]; s.wait != nil {
			wait.Merge(s.wait)
			service.Merge(s.service)
		}
	}
	return wait, service
}

// since returns the values that later counts and earlier does not, each value within its bucket.
func since(earlier, later *histogram.Histogram) *histogram.Histogram {
	d := new(histogram.Histogram)
	switch {
	case later == nil || earlier != nil && earlier.Count() == later.Count():
		return d
	case earlier == nil:
		earlier = d
	}
	next, stop := iter.Pull2(earlier.Buckets())
	defer stop()
	had, before, more := next()
	for v, n := range later.Buckets() { // both are in order, and what is in the earlier one is in the later one
		for more && had < v {
			had, before, more = next()
		}
		if more && had == v {
			n = minus(n, before)
		}
		if n > 0 {
			d.RecordN(v, n)
		}
	}
	return d
}

// minus is a - b for counters, and 0 if b is larger.
func minus(a, b uint64) uint64 {
	if a < b {
		return 0
	}
	return a - b
}

// series returns a value for every interval kept, the latest last. A missing value is NaN. The
// argument of gets a sample and the sample before, which is nil at the start and after a time without looks.
func (w *watch) series(of func(s, before *sample) float64) []float64 {
	line := make([]float64, kept)
	for i := range line {
		line[i] = math.NaN()
	}
	n := len(w.samples)
	for i := range w.samples {
		s, before := &w.samples[i], (*sample)(nil)
		if i > 0 && s.at.Sub(w.samples[i-1].at) <= 3*interval {
			before = &w.samples[i-1]
		}
		if slot := kept - 1 - int(w.samples[n-1].at.Sub(s.at).Round(interval)/interval); slot >= 0 {
			line[slot] = of(s, before)
		}
	}
	return line
}
