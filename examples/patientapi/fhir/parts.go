package fhir

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/route"
)

// Observations and prescriptions are parts of a patient: they are searched for by the
// patient, and their ids begin with the patient's.

type observationQuery struct {
	Accept  []string            `header:"Accept"`
	Format  string              `query:"_format"`
	Patient string              `query:"patient" validate:"max=300"`
	Code    string              `query:"code" validate:"max=500,pattern=^\\P{C}*$" must:"be without control characters"`
	Count   route.Optional[int] `query:"_count" validate:"min=1"`
	Page    string              `query:"_page" validate:"max=4096"`
}

type observationForm struct {
	Accept  []string            `header:"Accept"`
	Format  string              `form:"_format"`
	Patient string              `form:"patient" validate:"max=300"`
	Code    string              `form:"code" validate:"max=500,pattern=^\\P{C}*$" must:"be without control characters"`
	Count   route.Optional[int] `form:"_count" validate:"min=1"`
	Page    string              `form:"_page" validate:"max=4096"`
}

type medicationQuery struct {
	Accept  []string            `header:"Accept"`
	Format  string              `query:"_format"`
	Patient string              `query:"patient" validate:"max=300"`
	Count   route.Optional[int] `query:"_count" validate:"min=1"`
	Page    string              `query:"_page" validate:"max=4096"`
}

type medicationForm struct {
	Accept  []string            `header:"Accept"`
	Format  string              `form:"_format"`
	Patient string              `form:"patient" validate:"max=300"`
	Count   route.Optional[int] `form:"_count" validate:"min=1"`
	Page    string              `form:"_page" validate:"max=4096"`
}

// partSearch asks for a page of the parts of one patient.
type partSearch struct {
	Patient string // an id that may be one of a patient; empty: no patient has what was sent
	Code    string // as the client sent it; empty: any
	From    int    // how many are on the pages before
	Count   int
}

func (a *API) searchObservations(ctx context.Context, req observationQuery) (bundle[observation], error) {
	return a.observations(ctx, req, "query")
}

func (a *API) searchObservationsByForm(ctx context.Context, req observationForm) (bundle[observation], error) {
	return a.observations(ctx, observationQuery(req), "form")
}

func (a *API) searchMedications(ctx context.Context, req medicationQuery) (bundle[medicationRequest], error) {
	return a.medications(ctx, req, "query")
}

func (a *API) searchMedicationsByForm(ctx context.Context, req medicationForm) (bundle[medicationRequest], error) {
	return a.medications(ctx, medicationQuery(req), "form")
}

func (a *API) observations(ctx context.Context, req observationQuery, in string) (bundle[observation], error) {
	return partsOf(ctx, a, "Observation", req, in, func(ctx context.Context, q partSearch) (all []observation, err error) {
		answer, err := run(ctx, a, a.observationsOf(q.Patient))
		if err != nil {
			return nil, err
		}
		codes := codesOf(q.Code)
		for i := range answer.Value {
			if o := &answer.Value[i]; codes == nil || codes(o.Code) {
				all = append(all, observationOf(o))
			}
		}
		return all, nil
	})
}

func (a *API) medications(ctx context.Context, req medicationQuery, in string) (bundle[medicationRequest], error) {
	asked := observationQuery{Accept: req.Accept, Format: req.Format, Patient: req.Patient, Count: req.Count, Page: req.Page}
	return partsOf(ctx, a, "MedicationRequest", asked, in, func(ctx context.Context, q partSearch) (all []medicationRequest, err error) {
		answer, err := run(ctx, a, a.patientOf(q.Patient))
		if errors.Is(err, patientapi.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		defer answer.Release() // medicationOf keeps nothing of it
		for i := range answer.Value.Medications {
			all = append(all, medicationOf(&answer.Value, i))
		}
		return all, nil
	})
}

func (a *API) observationsOf(id string) func(context.Context, *[]patientapi.Observation) error {
	return func(ctx context.Context, dst *[]patientapi.Observation) (err error) {
		*dst, err = a.cfg.Store.Observations(ctx, id)
		return err
	}
}

func (a *API) patientOf(id string) func(context.Context, *patientapi.Patient) error {
	return func(ctx context.Context, dst *patientapi.Patient) error { return a.cfg.Store.Patient(ctx, id, dst) }
}

// resource has an id, which its URL ends with.
type resource interface{ identity() string }

func (p patient) identity() string           { return p.ID }
func (o observation) identity() string       { return o.ID }
func (m medicationRequest) identity() string { return m.ID }

// partsOf answers a search for parts of a patient, all of which find returns.
func partsOf[R resource](ctx context.Context, a *API, kind string, req observationQuery, in string, find func(context.Context, partSearch) ([]R, error)) (b bundle[R], err error) {
	if err := acceptable(req.Format, req.Accept); err != nil {
		return b, err
	}
	q, err := a.partConditions(kind, req, in, baseOf(ctx))
	if err != nil {
		return b, err
	}
	var all []R
	if q.Patient != "" {
		if err := access.FromContext(ctx).Touch(q.Patient); err != nil {
			return b, err
		}
		if all, err = find(ctx, q); err != nil {
			return b, err
		}
	}
	b = newBundle[R]()
	total, base := len(all), baseOf(ctx)+"/"+kind
	b.Total = &total
	from := min(q.From, total)
	to := min(from+q.Count, total)
	for _, r := range all[from:to] {
		b.add(base+"/"+r.identity(), r)
	}
	asked := req.used(q)
	if in == "form" || req.Page != "" {
		asked = ""
	}
	if err := b.linkSelf(a.pages, kind, base, asked, q); err != nil || to == total {
		return b, err
	}
	q.From = to
	return b, b.linkNext(a.pages, kind, base, q)
}

func (a *API) partConditions(kind string, req observationQuery, in, base string) (q partSearch, err error) {
	if req.Page != "" {
		q, err = open[partSearch](a.pages, kind, req.Page)
		if err == nil && (req.Patient != "" || req.Code != "" || req.Count.Set) {
			err = fault(in, "_page", "stands alone: it has the whole search in it")
		}
		return q, err
	}
	if req.Patient == "" {
		return q, fault(in, "patient", "is required: whose "+kind+" resources, such as P000042")
	}
	if strings.Contains(req.Patient, ",") {
		return q, fault(in, "patient", "is one patient: ask for each alone")
	}
	q = partSearch{Code: req.Code, Count: min(req.Count.Or(defaultCount), maxCount)}
	id := strings.TrimPrefix(strings.TrimPrefix(req.Patient, base+"/"), "Patient/")
	if _, err := patientapi.ParseID(id); err == nil {
		q.Patient = id
	}
	return q, nil
}

// used are the parameters that a search has taken into account.
func (req observationQuery) used(q partSearch) string {
	v := url.Values{"patient": {req.Patient}, "_count": {strconv.Itoa(q.Count)}}
	if req.Code != "" {
		v.Set("code", req.Code)
	}
	return v.Encode()
}
