// Package metricsprom shows limiters and worker pools to Prometheus.
//
//	registry.MustRegister(metricsprom.NewLimiter(lim), metricsprom.NewPool(pool))
//
// A collector asks for Stats when it is scraped and does nothing in between: the
// work that is measured pays nothing. A registry takes as many collectors as there
// are names; one that repeats a name is refused when it is registered.
//
// Labels are bounded: the configured name, words of a fixed list, and of the keys
// of a family as many as KeyedConfig allows. Text that is not UTF-8 is mended and
// long text is cut, so that no name and no key can fail a scrape.
package metricsprom

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
)

// Bounds are the upper bounds of all histogram buckets, in seconds: from what a
// free slot costs to what no caller waits for.
func Bounds() []float64 {
	return []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 10}
}

// longest is how many bytes of a label are shown.
const longest = 128

// clean returns what of s can be a label value.
func clean(s string) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	if len(s) <= longest {
		return s
	}
	const dots = "…"
	cut := longest - len(dots)
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + dots
}

// desc describes a metric of one limiter or pool. Its name is a constant label:
// that makes descriptions of different names different, and those of one name
// the same, which the registry refuses.
func desc(kind, name, metric, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("spillway_"+metric, help, labels, prometheus.Labels{kind: name})
}

// unique returns the cleaned names, or an error that registration will report.
func unique(kind string, names []string) ([]string, error) {
	seen := map[string]bool{}
	for i, name := range names {
		name = clean(name)
		if seen[name] {
			return nil, fmt.Errorf("metricsprom: two %ss are named %q: give each a Name of its own", kind, name)
		}
		seen[name], names[i] = true, name
	}
	return names, nil
}

// refused is a collector that no registry takes.
type refused struct{ err error }

func (r refused) Describe(ch chan<- *prometheus.Desc) { ch <- prometheus.NewInvalidDesc(r.err) }

func (r refused) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(r.err), r.err)
}

func counter(ch chan<- prometheus.Metric, d *prometheus.Desc, n float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, n, labels...)
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

// row is counts side by side, so that rows can be added up.
type row []float64

// grow adds what was counted between last and now. A count that fell began anew.
func (r row) grow(now, last row) {
	for i, n := range now {
		if i < len(last) && n >= last[i] {
			n -= last[i]
		}
		r[i] += n
	}
}

// times appends a histogram: how many in each bucket, above the last bound, and
// the sum in seconds.
func (r row) times(h *histogram.Histogram) row {
	below := uint64(0)
	for _, b := range Bounds() {
		upTo := h.CountAtMost(int64(math.Round(b * float64(time.Second))))
		r, below = append(r, float64(upTo-below)), upTo
	}
	return append(r, float64(h.Count()-below), h.Sum()/float64(time.Second))
}

// sizeOfTimes is how long times makes a row.
var sizeOfTimes = len(Bounds()) + 2

// seconds shows what times appended.
func seconds(ch chan<- prometheus.Metric, d *prometheus.Desc, times row, labels ...string) {
	bounds := Bounds()
	buckets, upTo := make(map[float64]uint64, len(bounds)), uint64(0)
	for i, b := range bounds {
		upTo += uint64(times[i])
		buckets[b] = upTo
	}
	count, sum := upTo+uint64(times[len(bounds)]), times[len(bounds)+1]
	ch <- prometheus.MustNewConstHistogram(d, count, sum, buckets, labels...)
}

// rejections appends every reason, also those that never occurred: a rate over a
// series that appears with its first event misses that event.
func (r row) rejections(by map[spillway.Reason]uint64) row {
	for _, reason := range spillway.Reasons() {
		r = append(r, float64(by[reason]))
	}
	return r
}

// results are the values of the label result: those given and every reason.
func results(first ...string) []string {
	for _, reason := range spillway.Reasons() {
		first = append(first, reason.String())
	}
	return first
}
