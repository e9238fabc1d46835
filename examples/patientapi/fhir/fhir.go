// Package fhir is the read side of HL7 FHIR R4 (4.0.1) over the patient store: Patient,
// Observation and MedicationRequest by id and by search, everything about a patient or
// about all, and a CapabilityStatement.
//
// Its operations are routes of package route behind package front, as those of package
// httpapi are, and run under the same pattern. Everything that fails is answered with an
// OperationOutcome, which repeats nothing that was sent. Searches are strict unless the
// client prefers handling=lenient. Links to further pages are encrypted, so that no name
// is in a URL unless the client has put it there.
package fhir

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/examples/patientapi/export"
	"github.com/spillway-go/spillway/examples/patientapi/front"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/route"
)

// prefix is where the API is.
const prefix = "/fhir"

// Config says what an API serves. The first three are needed.
type Config struct {
	Front  *front.Front // shared with the other APIs of the service
	Runner *patterns.Runner
	Store  patientapi.Store

	// Base is the URL under which clients reach the API, such as
	// https://hospital.example/fhir, for the links in its answers. Empty means what each
	// request says, which is not right behind a proxy that ends TLS.
	Base string

	// PageKey encrypts links to pages, by PageKeySize random bytes. Replicas behind one
	// address need the same. Nil means one that is made now and gone with the process,
	// and the links with it.
	PageKey []byte

	// Exports is how many exports of everybody run at one time; more are refused. 0
	// means 2.
	Exports int

	// Bulk makes exports of everybody as jobs. Nil means that there are none.
	Bulk *export.Exports

	Timeout     time.Duration // of a request, once it is admitted, but for exports; 0 means none
	BodyTimeout time.Duration // to receive a body; 0 means 10 s
}

// API is the http.Handler of all that is below /fhir.
type API struct {
	cfg     Config
	clients *front.API
	pages   *sealer
	exports *limiter.Limiter
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.clients.ServeHTTP(w, r) }

// New returns the API of cfg. An error is a mistake in cfg.
func New(cfg Config) (*API, error) {
	if cfg.Exports == 0 {
		cfg.Exports = 2
	}
	if cfg.Exports < 0 {
		return nil, errors.New("fhir: Exports is negative: 0 means 2")
	}
	a := &API{cfg: cfg}
	a.cfg.Base = strings.TrimSuffix(cfg.Base, "/")
	var err error
	if a.pages, err = newSealer(cfg.PageKey); err != nil {
		return nil, err
	}
	if a.exports, err = limiter.New(limiter.Config{Name: "exports", Law: limit.NewFixed(cfg.Exports), QueueSize: -1}); err != nil {
		return nil, err
	}
	a.clients = cfg.Front.API(route.Config{
		Errors: problems, ProblemFormat: outcomes, Produces: mediaType, Limits: route.Limits{Body: maxBody, Read: cfg.BodyTimeout},
	})
	return a, a.operations()
}

// maxBody is what a search by form may weigh.
const maxBody = 16 << 10

// problems translate what the store returns. Packages front and route know the rest.
var problems = route.Errors{
	route.As(http.StatusBadRequest, named),
	route.Is(patientapi.ErrNotFound, route.Problem{Status: http.StatusNotFound, Detail: "there is no resource of that id"}),
	route.Is(patientapi.ErrUnavailable, route.Problem{Status: http.StatusBadGateway, Detail: "the patient store did not answer"}),
	route.Is(jobqueue.ErrUnavailable, route.Problem{Status: http.StatusBadGateway, Detail: "the queue of exports did not answer: ask again later"}),
	route.Is(export.ErrNotFound, route.Problem{Status: http.StatusNotFound, Detail: "there is no such export or file, or not any more"}),
	route.Is(export.ErrDisk, route.Problem{Status: http.StatusInternalServerError, Detail: "exports cannot be written: the disk of the service is full, or broken, or that of its queue"}),
	route.Is(export.ErrDamaged, route.Problem{Status: http.StatusInternalServerError, Detail: export.Damaged}),
}

// Beside returns a handler that leaves to next what is not below /fhir.
func (a *API) Beside(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest, ok := strings.CutPrefix(r.URL.Path, prefix); ok && (rest == "" || rest[0] == '/') {
			a.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// operations adds the routes. A read by id is for the patient at hand; a search can
// wait a moment, and exports for as long as it takes.
func (a *API) operations() error {
	type add struct {
		resource access.Resource
		names    string // of the parameters that decide what a search finds
		read     *route.Route
		searches []*route.Route
	}
	const pages = " _count _summary _page"
	var all []front.Operations
	for _, o := range []add{
		{access.Patients, "_id identifier name birthdate _lastUpdated" + pages, route.New("GET", "/fhir/Patient/{id}", a.readPatient), []*route.Route{
			route.New("GET", "/fhir/Patient", a.searchPatients), route.New("POST", "/fhir/Patient/_search", a.searchPatientsByForm)}},
		{access.Observations, "patient code" + pages, route.New("GET", "/fhir/Observation/{id}", a.readObservation), []*route.Route{
			route.New("GET", "/fhir/Observation", a.searchObservations), route.New("POST", "/fhir/Observation/_search", a.searchObservationsByForm)}},
		{access.MedicationRequests, "patient" + pages, route.New("GET", "/fhir/MedicationRequest/{id}", a.readMedication), []*route.Route{
			route.New("GET", "/fhir/MedicationRequest", a.searchMedications), route.New("POST", "/fhir/MedicationRequest/_search", a.searchMedicationsByForm)}},
	} {
		for _, r := range o.searches {
			a.common(r, o.names).Limits(route.Limits{Handle: a.cfg.Timeout})
		}
		a.common(o.read, "").Limits(route.Limits{Handle: a.cfg.Timeout})
		all = append(all, front.For(o.resource, access.Read, o.read.Priority(spillway.Critical)).Of("id"), front.For(o.resource, access.Search, o.searches...))
	}
	one := []*route.Route{route.New("GET", "/fhir/Patient/{id}/$everything", a.everything), route.New("POST", "/fhir/Patient/{id}/$everything", a.everythingByBody)}
	everybody := []*route.Route{route.New("GET", "/fhir/Patient/$everything", a.everybody), route.New("POST", "/fhir/Patient/$everything", a.everybodyByBody)}
	for _, r := range append(slices.Clone(one), everybody...) {
		a.common(r, "_since _type _count _page start end").Priority(spillway.Low).Use(paced)
	}
	for _, r := range []*route.Route{one[1], everybody[1]} {
		// A member that is misspelled would leave out what narrows the answer.
		r.Consumes(mediaType, "application/json").AllowUnknown(func(*http.Request, string) bool { return false }).Use(bodied)
	}
	return a.clients.Add(append(all, a.bulk(),
		front.For(access.Patients, access.Export, one...).Of("id"),
		front.For(access.Patients, access.ExportAll, everybody...),
		front.Public(a.common(route.New("GET", "/fhir/metadata", a.metadata), "")),
	)...)
}

// common is what all routes have; names are of the parameters without which an answer would
// be more than was asked for.
func (a *API) common(r *route.Route, names string) *route.Route {
	narrowing := narrows(names)
	return r.AllowUnknown(func(r *http.Request, name string) bool { return lenient(r) && !narrowing(name) }).Use(a.based, typed)
}

// run asks the store under the pattern.
func run[T any](ctx context.Context, a *API, fill func(context.Context, *T) error) (*patterns.Answer[T], error) {
	return patterns.Run(ctx, a.cfg.Runner, fill)
}
