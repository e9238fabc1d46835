// Package metricsprom exports limiters and worker pools to Prometheus.
//
//	registry.MustRegister(metricsprom.New(metrics.Limiter(lim), metrics.Pool(pool)))
//
// A collector reads Stats when it is scraped and does nothing in between: the measured work pays
// nothing. A registry accepts any number of collectors with distinct names. It refuses a collector
// with a repeated name at registration. The module depends on client_golang.
//
// The metrics, with bounded labels, are the metrics of package metrics, with names in Prometheus
// style: spillway.request.duration in seconds is spillway_request_duration_seconds, and a counter
// ends in _total. Dashboard is a Grafana dashboard of these metrics. docs/operate/metrics.md lists
// them and the alerts in deploy/prometheus; docs/operate/autoscaling.md scales by them.
//
// With OpenTelemetry, use package metricsotel instead: an exporter to Prometheus yields the same
// names.
package metricsprom

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spillway-go/spillway/metrics"
)

//go:embed dashboard.json
var dashboard string

// Dashboard returns a Grafana dashboard as JSON, to import or to provision. It asks
// for the data source and works for any number of services and limiters.
func Dashboard() []byte { return []byte(dashboard) }

// New returns a collector over limiters (metrics.Limiter), worker pools (metrics.Pool), families of
// limiters (metrics.Keyed) and other sources. All sources of one kind in the same registry must have
// different names (limiter.Config.Name): otherwise registering the collector is an error. The limiter
// of semaphore.NewWeighted has no name: give a semaphore a limiter with one (semaphore.New).
func New(sources ...*metrics.Source) prometheus.Collector {
	if err := metrics.Distinct(sources...); err != nil {
		return refused{err}
	}
	c := make(collector, len(sources))
	for i, s := range sources {
		c[i] = describe(s)
	}
	return c
}

// described is a source with its Prometheus descriptions.
type described struct {
	*metrics.Source
	metrics []metrics.Metric
	descs   []*prometheus.Desc // by metric
}

// describe makes the name of the source a constant label. So sources with different names have
// different descriptions. Sources with the same name have equal descriptions, which the registry
// refuses.
func describe(source *metrics.Source) described {
	s := described{Source: source, metrics: source.Metrics()}
	kind, name := source.Label()
	for _, m := range s.metrics {
		s.descs = append(s.descs, prometheus.NewDesc(nameOf(m), m.Help, m.Labels, prometheus.Labels{kind: name}))
	}
	if name == "" {
		s.descs = append(s.descs, nameless(kind, source)...)
	}
	return s
}

// nameless are descriptions without a metric. The last one is shown by the error of a registry that
// has another source of this kind without a name. The first one differs from source to source: if all
// were equal, the error would say no more than that the collector is a duplicate.
func nameless(kind string, source *metrics.Source) []*prometheus.Desc {
	help := metrics.Distinct(source, source).Error()
	return []*prometheus.Desc{
		prometheus.NewDesc(fmt.Sprintf("spillway_nameless_%s_%p", kind, source), help, nil, nil),
		prometheus.NewDesc("spillway_nameless_"+kind, help, nil, nil),
	}
}

// nameOf returns the name of a metric in Prometheus.
func nameOf(m metrics.Metric) string {
	name := strings.ReplaceAll(m.Name, ".", "_")
	if m.Unit == "s" {
		name += "_seconds"
	}
	if m.Kind == metrics.Counter {
		name += "_total"
	}
	return name
}

type collector []described

func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, s := range c {
		for _, d := range s.descs {
			ch <- d
		}
	}
}

func (c collector) Collect(ch chan<- prometheus.Metric) {
	bounds := metrics.Bounds()
	for _, s := range c {
		for _, sample := range s.Read() {
			desc := s.descs[sample.Metric]
			switch s.metrics[sample.Metric].Kind {
			case metrics.Histogram:
				ch <- histogramOf(desc, bounds, sample)
			case metrics.Counter:
				ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, sample.Value, sample.Labels...)
			default:
				ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, sample.Value, sample.Labels...)
			}
		}
	}
}

// histogramOf makes the buckets cumulative, as Prometheus requires.
func histogramOf(desc *prometheus.Desc, bounds []float64, s metrics.Sample) prometheus.Metric {
	buckets, upTo := make(map[float64]uint64, len(bounds)), uint64(0)
	for i, b := range bounds {
		upTo += s.Counts[i]
		buckets[b] = upTo
	}
	return prometheus.MustNewConstHistogram(desc, upTo+s.Counts[len(bounds)], s.Value, buckets, s.Labels...)
}

// refused is a collector that every registry refuses.
type refused struct{ err error }

func (r refused) Describe(ch chan<- *prometheus.Desc) { ch <- prometheus.NewInvalidDesc(r.err) }

func (r refused) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(r.err), r.err)
}
