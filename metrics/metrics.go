// Package metrics describes limiters and worker pools as metrics: names, units,
// labels, and the values now. The modules metricsprom and metricsotel hand them to
// Prometheus and to OpenTelemetry; an adapter to another library is a loop over
// Read:
//
//	source := metrics.Limiter(lim)
//	for _, s := range source.Read() {
//		m := source.Metrics()[s.Metric] // m.Name, m.Kind, m.Labels
//	}
//
// Labels are bounded: the configured name, words of a fixed list, and of the keys
// of a family as many as KeyedConfig allows. Text that is not UTF-8 is mended and
// long text is cut, so that no name and no key can fail a scrape.
package metrics

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
)

// Kind says how the values of a metric behave. The words are OpenTelemetry's.
type Kind uint8

const (
	Counter       Kind = iota // rises only
	UpDownCounter             // rises and falls; the sum over instances has a meaning
	Gauge                     // rises and falls; the sum over instances may have none
	Histogram                 // counts in buckets: Sample.Times
)

func (k Kind) String() string {
	switch k {
	case Counter:
		return "counter"
	case UpDownCounter:
		return "updowncounter"
	case Gauge:
		return "gauge"
	case Histogram:
		return "histogram"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Metric describes a metric.
type Metric struct {
	Name   string // with dots, such as spillway.request.duration
	Kind   Kind
	Unit   string // "s", or what is counted, in braces; empty for a ratio
	Help   string
	Labels []string // beside the label of the Source
}

// Sample is the value of a metric for one set of labels.
type Sample struct {
	Metric int      // index in Source.Metrics
	Labels []string // values, in the order of Metric.Labels; an empty one means that the label is absent
	Value  float64  // unless the metric is a Histogram
	Times  Times    // of a Histogram
}

// Times are durations counted in buckets.
type Times struct {
	Counts []uint64 // one for each of Bounds, not summed up, and one more for what is above
	Sum    float64  // seconds
}

// Bounds are the upper bounds of all histogram buckets, in seconds: from what a
// free slot costs to what no caller waits for.
func Bounds() []float64 {
	return []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 10}
}

// Source is a limiter, a family of limiters, a pool, or what else New was given, as
// metrics. It does nothing between two calls of Read, so the work that is measured pays
// nothing. It is safe for concurrent use by any number of readers.
type Source struct {
	kind, name string
	metrics    []Metric
	read       func() []Sample
}

// New returns a source of a kind that this package does not have, as jobqueue.Metrics and
// clusterlimit.Metrics are. Kind becomes the label that all its samples share, and name its
// value. Sources of one kind have the same metrics. Several goroutines may call read at once.
// A sample that fits no metric, or has not as many labels, is left out: it could fail a whole
// scrape. Histograms of such sources are for Prometheus alone. Where read is nil
// there are none.
func New(kind, name string, metrics []Metric, read func() []Sample) *Source {
	if read == nil {
		read = func() []Sample { return nil }
	}
	s := &Source{kind: kind, name: Clean(name), metrics: slices.Clone(metrics)}
	s.read = func() []Sample { return s.fitting(read()) }
	return s
}

// fitting returns the samples that fit the metrics, with clean labels.
func (s *Source) fitting(all []Sample) []Sample {
	fit := make([]Sample, 0, len(all))
	for _, one := range all {
		if one.Metric < 0 || one.Metric >= len(s.metrics) || len(one.Labels) != len(s.metrics[one.Metric].Labels) {
			continue
		}
		if s.metrics[one.Metric].Kind == Histogram && len(one.Times.Counts) != len(Bounds())+1 {
			continue
		}
		one.Labels = slices.Clone(one.Labels)
		for i, l := range one.Labels {
			one.Labels[i] = Clean(l)
		}
		fit = append(fit, one)
	}
	return fit
}

// Label returns the label that all samples of the source share, such as "limiter" or
// "pool", and the name of it.
func (s *Source) Label() (name, value string) { return s.kind, s.name }

// Metrics describes what Read returns. Sources of one kind have the same metrics, in
// the same order.
func (s *Source) Metrics() []Metric { return slices.Clone(s.metrics) }

// Read returns all values as they are now, also those that are zero: a rate over a
// series that appears with its first event misses that event. It costs some
// microseconds for each limiter or pool; other sources say what theirs costs.
func (s *Source) Read() []Sample { return s.read() }

// OfLimiters describes what Read of a limiter or a family returns.
func OfLimiters() []Metric { return slices.Clone(limiterMetrics) }

// OfPools describes what Read of a pool returns.
func OfPools() []Metric { return slices.Clone(poolMetrics) }

// Distinct returns an error if two of the sources are of one kind and have one name:
// their samples could not be told apart.
func Distinct(sources ...*Source) error {
	seen := map[[2]string]bool{}
	for _, s := range sources {
		id := [2]string{s.kind, s.name}
		if seen[id] {
			return fmt.Errorf("metrics: two %ss are named %q: give each a Name of its own", s.kind, s.name)
		}
		seen[id] = true
	}
	return nil
}

// samples are in the same order whatever their values, so that those of many
// limiters can be added up.
type samples []Sample

// gathering is how samples are made: all their labels in one piece of memory, since they
// are many.
type gathering struct {
	samples samples
	words   []string
}

func gather(samples int) *gathering {
	return &gathering{make([]Sample, 0, samples), make([]string, 0, 3*samples)}
}

// labels returns labels from the n-th word on.
func (g *gathering) labels(n int) []string { return g.words[n:len(g.words):len(g.words)] }

func (g *gathering) put(metric int, value float64, labels ...string) {
	n := len(g.words)
	g.words = append(g.words, labels...)
	g.samples = append(g.samples, Sample{Metric: metric, Value: value, Labels: g.labels(n)})
}

// times puts a histogram of nanoseconds.
func (g *gathering) times(metric int, h *histogram.Histogram, labels ...string) {
	bounds := Bounds()
	t := Times{Counts: make([]uint64, 0, len(bounds)+1), Sum: h.Sum() / float64(time.Second)}
	below := uint64(0)
	for _, b := range bounds {
		upTo := h.CountAtMost(int64(math.Round(b * float64(time.Second))))
		t.Counts, below = append(t.Counts, upTo-below), upTo
	}
	t.Counts = append(t.Counts, h.Count()-below)
	g.put(metric, 0, labels...)
	g.samples[len(g.samples)-1].Times = t
}

// reasons puts a count for every reason, under the labels and the reason.
func (g *gathering) reasons(metric int, by map[spillway.Reason]uint64, labels ...string) {
	for _, r := range spillway.Reasons() {
		n := len(g.words)
		g.words = append(append(g.words, labels...), r.String())
		g.samples = append(g.samples, Sample{Metric: metric, Value: float64(by[r]), Labels: g.labels(n)})
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// longest is how many bytes of a label are shown.
const longest = 128

// Clean returns what of s can be the value of a label.
func Clean(s string) string {
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
