package httpapi

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/directory"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
)

// partialHeader names the sources that are missing from an answer, for clients
// that do not read the body: a proxy, a dashboard.
const partialHeader = "Partial-Answer"

// clinicians answers who is reached at an address in an organisation.
func (a *API) clinicians(w http.ResponseWriter, r *http.Request) error {
	q, cache, err := readClinicianQuery(r.URL)
	if err != nil {
		return err
	}
	resp, err := a.cfg.Runner.LookupClinicians(r.Context(), q, cache)
	if err != nil {
		return err
	}
	defer resp.Release() // written by then
	if missing := resp.Clinicians.Partial; len(missing) > 0 {
		w.Header().Set(partialHeader, strings.Join(missing, ", "))
	}
	return writeJSON(w, http.StatusOK, &resp.Clinicians)
}

func readClinicianQuery(u *url.URL) (q patientapi.ClinicianQuery, cache bool, err error) {
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return q, false, &problem{Status: http.StatusBadRequest, Type: "malformed-query",
			Detail: "escape the query, such as ?email=someone%40org01.example&org=Weir%20Road%20Surgery"}
	}
	for _, field := range []string{"email", "org", "cache"} {
		if len(values[field]) > 1 {
			return q, false, &patientapi.FieldError{Field: field, Want: "one value, not several"}
		}
	}
	cache = true
	if values.Has("cache") {
		if cache, err = strconv.ParseBool(values.Get("cache")); err != nil {
			return q, false, &patientapi.FieldError{Field: "cache", Want: "true or false"}
		}
	}
	q, err = patientapi.NewClinicianQuery(values.Get("email"), values.Get("org"))
	return q, cache, err
}

// exampleClinicians is a question that has an answer under the default seed.
var exampleClinicians = func() string {
	c := patientapi.Generator{Seed: 1}.Clinician(1)
	shared := c.Mailboxes()[1]
	return "/api/v1/clinicians?email=" + shared + "&org=" + url.PathEscape(c.Organisation)
}()

// cacheMetrics count what became of the questions to the cache of clinicians.
func cacheMetrics(runner *patterns.Runner) (all []prometheus.Collector) {
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
		}, func() float64 { return float64(count(runner.Clinicians())) }))
	}
	return all
}
