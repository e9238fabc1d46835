package debugpage

import (
	"math"
	"time"

	"github.com/spillway-go/spillway/histogram"
)

const (
	// interval is how often a reader of the stream is told, and the step of charts.
	interval = time.Second
	// fresh is for how long a look at the limiters serves every reader.
	fresh = interval * 9 / 10
	// kept is how many samples of a limiter are remembered: two minutes.
	kept = 120
	// recent is what figures "a second" and the state in one word are about.
	recent = 10 * time.Second
)

// watch remembers what one limiter did while the page was looked at.
type watch struct {
	made    time.Time // the limiter was made then or before
	now     picture
	samples []sample // oldest first, none older than kept intervals
}

// sample is one look. Its histograms hold what was recorded since the look before,
// and are nil in the first and after a pause.
type sample struct {
	picture
	at            time.Time
	wait, service *histogram.Histogram
}

// add takes a picture. The first and the latest looks are those of the stream or of
// single requests alike.
func (w *watch) add(now time.Time, p picture) {
	s := sample{picture: p, at: now}
	if n := len(w.samples); n > 0 && !w.gap(now) {
		s.wait, s.service = since(w.now.QueueWait, p.QueueWait), since(w.now.Service, p.Service)
	}
	w.now = p
	s.QueueWait, s.Service, s.Leaks = nil, nil, nil // w.now has them
	for _, d := range p.Decisions {
		if made := now.Add(-d.At); made.Before(w.made) {
			w.made = made
		}
	}
	w.samples = append(w.samples, s)
	drop := 0
	for now.Sub(w.samples[drop].at) >= kept*interval {
		drop++
	}
	w.samples = append(w.samples[:0], w.samples[drop:]...)
}

// gap reports whether the last sample is too old to draw a line from.
func (w *watch) gap(now time.Time) bool {
	return len(w.samples) == 0 || now.Sub(w.samples[len(w.samples)-1].at) > 3*interval
}

// from returns the oldest sample of the last d, and how long ago it was; nil without
// one before the latest.
func (w *watch) from(d time.Duration) (*sample, time.Duration) {
	n := len(w.samples)
	for i := range max(n-1, 0) {
		if age := w.samples[n-1].at.Sub(w.samples[i].at); age <= d+interval/2 {
			return &w.samples[i], age
		}
	}
	return nil, 0
}

// times adds up what the samples' histograms hold.
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

// since returns what later counts more than earlier, each value within its bucket.
func since(earlier, later *histogram.Histogram) *histogram.Histogram {
	had := map[int64]uint64{}
	if earlier != nil {
		for b := range earlier.Buckets() {
			had[b.Low] = b.Count
		}
	}
	d := new(histogram.Histogram)
	if later != nil {
		for b := range later.Buckets() {
			d.RecordN(b.Low+(b.High-b.Low)/2, minus(b.Count, had[b.Low]))
		}
	}
	return d
}

// minus is a - b for counters, 0 where that would be below zero.
func minus(a, b uint64) uint64 {
	if a < b {
		return 0
	}
	return a - b
}

// series returns a value for every interval that is remembered, the latest last;
// NaN where there is none. Of takes a sample and the one before, which is nil at the
// start and after a gap.
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
