// Package metrics describes limiters and worker pools as metrics: names, units, labels, and current
// values. The modules metricsprom and metricsotel pass the metrics to Prometheus and to
// OpenTelemetry. An adapter to another library is a loop over Read:
//
//	source := metrics.Limiter(lim)
//	for _, s := range source.Read() {
//		m := source.Metrics()[s.Metric] // m.Name, m.Kind, m.Labels
//	}
//
// Labels are bounded: the configured name, words of a fixed list, the kinds that a limiter tells apart,
// and the number of keys of a family that KeyedConfig permits. Invalid UTF-8 is replaced and long text is cut, so that no name
// and no key can fail a scrape. docs/operate/metrics.md lists all metrics.
//
// # Pitfalls
//
//   - Names are labels: two limiters with the same name cannot be told apart. [Distinct] finds
//     them.
//   - The keys of a family become labels: do not use a user's id as a key.
package metrics

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
)

// Kind is the behaviour of a metric's values. The names are OpenTelemetry's.
type Kind uint8

const (
	Counter       Kind = iota // only rises
	UpDownCounter             // rises and falls; the sum over instances is meaningful
	Gauge                     // rises and falls; the sum over instances may be meaningless
	Histogram                 // durations in buckets: Sample.Counts
)

// Metric describes a metric.
type Metric struct {
	Name   string // with dots, such as spillway.request.duration
	Kind   Kind
	Unit   string // "s", or the counted items, in braces; empty for a ratio
	Help   string
	Labels []string // in addition to the label of the Source
}

// Sample is the value of a metric for one set of labels.
type Sample struct {
	Metric int      // index in Source.Metrics
	Labels []string // values, in the order of Metric.Labels; an empty value means that the label is absent
	Value  float64  // for a Histogram the sum of all durations, in seconds
	Counts []uint64 // for a Histogram only: one for each of Bounds, not cumulative, and one for larger values
}

// Bounds are the upper bounds of all histogram buckets, in seconds: from the cost of a free slot to
// waits that no caller tolerates.
func Bounds() []float64 {
	return []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 10}
}

// Source is a limiter, a family of limiters, a pool, or an argument of New, as metrics. It does
// nothing between two calls of Read, so the measured work pays nothing. It is safe for concurrent
// use by any number of readers.
type Source struct {
	kind, name string
	metrics    []Metric
	read       func() []Sample
}

// New returns a source of a kind that this package does not have. Examples are jobqueue.Metrics and
// clusterlimit.Metrics. Kind becomes the label that all its samples share, and name the label's
// value. Sources of one kind have the same metrics. Several goroutines may call read at once. New
// drops a sample without a matching metric, or with a wrong number of labels: it could fail a whole
// scrape. Only Prometheus shows the histograms of such sources. If read is nil, there are no
// samples.
func New(kind, name string, metrics []Metric, read func() []Sample) *Source {
	if read == nil {
		read = func() []Sample { return nil }
	}
	s := &Source{kind: kind, name: clean(name), metrics: slices.Clone(metrics)}
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
		if s.metrics[one.Metric].Kind == Histogram && len(one.Counts) != len(Bounds())+1 {
			continue
		}
		one.Labels = slices.Clone(one.Labels)
		for i, l := range one.Labels {
			one.Labels[i] = clean(l)
		}
		fit = append(fit, one)
	}
	return fit
}

// Label returns the name and the value of the label that all samples of the source share. The name
// is "limiter" or "pool", for example.
func (s *Source) Label() (name, value string) { return s.kind, s.name }

// Metrics describes the result of Read. Sources of one kind have the same metrics, in the same
// order.
func (s *Source) Metrics() []Metric { return slices.Clone(s.metrics) }

// Read returns all current values, including zeros: a rate over a series that appears with its
// first event misses that event. Read costs some microseconds for each limiter or pool. Other
// sources document their cost.
func (s *Source) Read() []Sample { return s.read() }

// Distinct returns an error if two of the sources have the same kind and the same name: their
// samples would be indistinguishable.
func Distinct(sources ...*Source) error {
	seen := map[[2]string]bool{}
	for _, s := range sources {
		id := [2]string{s.kind, s.name}
		if seen[id] && s.name == "" {
			return fmt.Errorf("metrics: two %ss have no name: give them names (%s)", s.kind, cmp.Or(nameFields[s.kind], "Config.Name"))
		}
		if seen[id] {
			return fmt.Errorf("metrics: two %ss are named %q: give each a Config.Name of its own", s.kind, s.name)
		}
		seen[id] = true
	}
	return nil
}

// nameFields are the fields that name a source, by kind.
var nameFields = map[string]string{"limiter": "limiter.Config.Name", "pool": "workerpool.Config.Name"}

// samples have the same order whatever their values, so that the samples of several limiters can be
// added up.
type samples []Sample

// gathering builds samples. All labels share one allocation, because there are many.
type gathering struct {
	samples samples
	words   []string
}

func gather(samples int) *gathering {
	return &gathering{make([]Sample, 0, samples), make([]string, 0, 3*samples)}
}

// labels returns the labels from the n-th word on.
func (g *gathering) labels(n int) []string { return g.words[n:len(g.words):len(g.words)] }

func (g *gathering) put(metric int, value float64, labels ...string) {
	n := len(g.words)
	g.words = append(g.words, labels...)
	g.samples = append(g.samples, Sample{Metric: metric, Value: value, Labels: g.labels(n)})
}

// times adds a histogram of nanoseconds.
func (g *gathering) times(metric int, h *histogram.Histogram, labels ...string) {
	bounds := Bounds()
	counts, below := make([]uint64, 0, len(bounds)+1), uint64(0)
	for _, b := range bounds {
		upTo := h.CountAtMost(int64(math.Round(b * float64(time.Second))))
		counts, below = append(counts, upTo-below), upTo
	}
	g.put(metric, h.Sum()/float64(time.Second), labels...)
	g.samples[len(g.samples)-1].Counts = append(counts, h.Count()-below)
}

// reasons adds a count for every reason, with the labels and the reason.
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

// longest is the maximum length of a label value in bytes.
const longest = 128

// clean returns s as a valid label value.
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
