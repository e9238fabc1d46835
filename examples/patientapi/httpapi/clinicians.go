package httpapi

import (
	"net/url"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/directory"
)

// exampleClinicians is a question that has an answer under the default seed.
var exampleClinicians = func() string {
	c := patientapi.Generator{Seed: 1}.Clinician(1)
	shared := c.Mailboxes()[1]
	return "/api/v1/clinicians?email=" + shared + "&org=" + url.PathEscape(c.Organisation)
}()

// cacheMetrics count what became of the questions to the cache of clinicians.
func cacheMetrics(clinicians *directory.Directory) (all []prometheus.Collector) {
	for result, count := range map[string]func(directory.Stats) uint64{
		"hit":    func(s directory.Stats) uint64 { return s.Hits },
		"miss":   func(s directory.Stats) uint64 { return s.Misses },
		"failed": func(s directory.Stats) uint64 { return s.Failures },
		"unkept": func(s directory.Stats) uint64 { return s.Unkept },
	} {
		all = append(all, prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name:        "patientapi_clinician_cache_total",
			Help:        "Uses of the cache of clinicians. Each failed one made a partial answer; an unkept one came after a miss and made none.",
			ConstLabels: prometheus.Labels{"result": result},
		}, func() float64 { return float64(count(clinicians.Stats())) }))
	}
	return all
}
