package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/examples/patientapi/front"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/route"
)

// MaxBatch is how many ids one batch may ask for.
const MaxBatch = 100

// maxBody is what a batch request may weigh: a hundred ids, generously written.
const maxBody = 16 << 10

// reasonHeader tells a client why it was refused.
const reasonHeader = admissionhttp.HeaderReason

// withheldHeader names the parts of a record that the token does not open. Without the
// header a list that is not there is empty.
const withheldHeader = "Withheld"

const aboutParts = "Parts for which the token has no scope are left out, and named in the header " + withheldHeader + "."

// about heads the document.
var about = route.Info{
	Title:       "Patient API",
	Version:     "1",
	Description: "The reference service of Spillway. All people in it are invented. Answers are not to be stored. Every answer has an X-Request-Id, the client's own if it is a sane one; problems repeat it as request_id.",
}

// Document returns the OpenAPI document of the API, which is the same under every
// pattern.
func Document() ([]byte, error) {
	a := API{front: front.New(front.Config{})}
	api, err := a.operations()
	if err != nil {
		return nil, err
	}
	return api.OpenAPI(about)
}

// operations returns the routes of the API, not yet with the pages beside them.
func (a *API) operations() (*front.API, error) {
	api := a.front.API(route.Config{
		Errors: problems, ProblemBase: "urn:patientapi:problem:",
		Limits: route.Limits{Body: maxBody, Read: a.cfg.BodyTimeout, Handle: a.cfg.Timeout},
	})
	// A read by id is for the patient at hand. A search can wait a moment, and bulk for as
	// long as it takes: under overload it is the first to be refused.
	getPatient := route.New("GET", "/api/v1/patients/{id}", a.patient).Name("getPatient").Tags("patients").
		Describe("One patient, by id. " + aboutParts).Priority(spillway.Critical).FailsWith(patientapi.ErrNotFound)
	findPatient := route.New("GET", "/api/v1/patients", a.patientByQuery).Name("findPatient").Tags("patients").
		Describe("One patient, by id in the query. " + aboutParts).FailsWith(patientapi.ErrNotFound)
	getPatients := route.New("POST", "/api/v1/patients:batch", a.batch).Name("getPatients").Tags("patients").
		Priority(spillway.Low).
		Describe("Many patients, in the order in which they are asked for. Ids that belong to nobody are listed as missing. " + aboutParts)
	findClinicians := route.New("GET", "/api/v1/clinicians", a.clinicians).Name("findClinicians").Tags("clinicians").
		Describe("Who is reached at an e-mail address in an organisation. Sources that did not answer are listed as partial, and in the header " + partialHeader + ".")
	for _, o := range []*route.Route{getPatient, findPatient, getPatients} {
		o.Answers(http.StatusOK, route.Answer{Headers: map[string]string{withheldHeader: "the parts of the record that the token does not open, by the names that scopes have for them, such as Condition, MedicationRequest"}})
	}
	for _, o := range []*route.Route{getPatient, findPatient, getPatients, findClinicians} {
		// What may happen to any lookup.
		o.FailsWith(&spillway.Rejection{}, patientapi.ErrUnavailable, context.DeadlineExceeded)
		o.Answers(http.StatusServiceUnavailable, route.Answer{Headers: map[string]string{reasonHeader: "why, such as queue_full or draining"}})
	}
	return api, api.Add(
		front.For(access.Patients, access.Read, getPatient).Of("id"),
		front.For(access.Patients, access.Read, findPatient),
		front.For(access.Patients, access.Search, getPatients),
		front.For(access.Clinicians, access.Search, findClinicians),
	)
}

// problems translate what lookups return into what clients are told. Package
// route knows the rest.
var problems = route.Errors{
	route.Is(patientapi.ErrNotFound, route.Problem{Status: http.StatusNotFound, Type: "unknown-patient", Detail: "there is no patient of that id"}),
	route.As(http.StatusBadRequest, func(e *patientapi.FieldError) route.Problem {
		return route.Problem{Type: "invalid-request", Detail: "the request has faults; each is listed",
			Errors: []route.Fault{{Parameter: e.Field, In: "query", Detail: "must be " + e.Want}}}
	}),
	route.Is(patientapi.ErrUnavailable, route.Problem{Status: http.StatusBadGateway, Type: "store-unavailable", Detail: "the patient store did not answer"}),
}

// found is an answer in memory that its pattern may reuse once it is written.
type found[T any] struct {
	route.Response[T]
	from *patterns.Answer[T]
}

// Close implements io.Closer: route calls it once the answer is written.
func (f found[T]) Close() error {
	f.from.Release()
	return nil
}

// run answers under the pattern.
func run[T any](ctx context.Context, a *API, fill func(context.Context, *T) error) (f found[T], err error) {
	made, err := patterns.Run(ctx, a.cfg.Runner, fill)
	if err == nil {
		f.Body, f.from = made.Value, made
	}
	return f, err
}

type byPath struct {
	ID string `path:"id" doc:"of the patient" must:"be P and six digits, such as P000042" validate:"pattern=^P[0-9]{6}$"`
}

type byQuery struct {
	ID string `query:"id" doc:"of the patient" must:"be P and six digits, such as P000042" validate:"required,pattern=^P[0-9]{6}$"`
}

func (a *API) patient(ctx context.Context, req byPath) (f found[patientapi.Patient], err error) {
	if err := access.FromContext(ctx).Touch(req.ID); err != nil {
		return f, err
	}
	f, err = run(ctx, a, func(ctx context.Context, p *patientapi.Patient) error { return a.cfg.Patients.Patient(ctx, req.ID, p) })
	if err == nil {
		f.Header = withheld(front.Withhold(access.FromContext(ctx), &f.Body))
	}
	return f, err
}

// withheld says which parts of the records are left out; nil if none is.
func withheld(parts []string) http.Header {
	if len(parts) == 0 {
		return nil
	}
	return http.Header{withheldHeader: {strings.Join(parts, ", ")}}
}

func (a *API) patientByQuery(ctx context.Context, req byQuery) (found[patientapi.Patient], error) {
	return a.patient(ctx, byPath(req))
}

type batchRequest struct {
	IDs []string `json:"ids" doc:"of the patients" must:"be P and six digits, such as P000042" validate:"required,min=1,max=100,pattern=^P[0-9]{6}$"`
}

func (a *API) batch(ctx context.Context, req batchRequest) (f found[patientapi.Batch], err error) {
	if err := access.FromContext(ctx).Touch(req.IDs...); err != nil {
		return f, err
	}
	f, err = run(ctx, a, func(ctx context.Context, b *patientapi.Batch) error { return a.cfg.Patients.Patients(ctx, req.IDs, b) })
	if err != nil {
		return f, err
	}
	records := make([]*patientapi.Patient, len(f.Body.Patients))
	for i := range records {
		records[i] = &f.Body.Patients[i]
	}
	f.Header = withheld(front.Withhold(access.FromContext(ctx), records...))
	return f, nil
}

// clinicianRequest asks as patientapi.NewClinicianQuery does, but for white space
// around. The patterns say what it takes.
type clinicianRequest struct {
	Email string `query:"email" doc:"an own address, or that of a team" must:"be one address, such as someone@org01.example" validate:"required,max=254,pattern=^[A-Za-z0-9!#$%&'*+/=?^_{|}~-]+(\\.[A-Za-z0-9!#$%&'*+/=?^_{|}~-]+)*@[A-Za-z0-9-]+(\\.[A-Za-z0-9-]+)*$"`
	Org   string `query:"org" doc:"the organisation's name" must:"be the name of an organisation, such as Weir Road Surgery" validate:"required,max=200,pattern=^[^\\p{Z}\\p{C}]+( +[^\\p{Z}\\p{C}]+)*$"`
	Cache bool   `query:"cache" doc:"whether to ask the cache, too" default:"true"`
}

// partialHeader names the sources that are missing from an answer, for clients
// that do not read the body: a proxy, a dashboard.
const partialHeader = "Partial-Answer"

func (a *API) clinicians(ctx context.Context, req clinicianRequest) (f found[patientapi.ClinicianAnswer], err error) {
	q, err := patientapi.NewClinicianQuery(req.Email, req.Org)
	if err != nil {
		return f, err
	}
	find := a.cfg.Clinicians.Find
	if !req.Cache {
		find = a.cfg.Clinicians.FindInStore
	}
	f, err = run(ctx, a, func(ctx context.Context, answer *patientapi.ClinicianAnswer) (err error) {
		*answer, err = find(ctx, q)
		return err
	})
	if missing := f.Body.Partial; len(missing) > 0 {
		f.Header = http.Header{partialHeader: {strings.Join(missing, ", ")}}
	}
	return f, err
}
