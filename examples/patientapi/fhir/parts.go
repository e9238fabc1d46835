package fhir

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/access"
)

// Observations and prescriptions are parts of a patient: they are searched for by the
// patient, and their ids begin with the patient's.

type observationQuery struct {
	asked
	Patient []string `query:"patient" validate:"max=8"`
	Code    []string `query:"code" validate:"max=8"`
	Count   []string `query:"_count" validate:"max=8"`
	Summary []string `query:"_summary" validate:"max=8"`
	Page    []string `query:"_page" validate:"max=8"`
}

type observationForm struct {
	asked
	Patient    []string `form:"patient" validate:"max=8"`
	Code       []string `form:"code" validate:"max=8"`
	Count      []string `form:"_count" validate:"max=8"`
	Summary    []string `form:"_summary" validate:"max=8"`
	Page       []string `form:"_page" validate:"max=8"`
	FormFormat []string `form:"_format" validate:"max=8"`
	FormPretty []string `form:"_pretty" validate:"max=8"`
}

type medicationQuery struct {
	asked
	Patient []string `query:"patient" validate:"max=8"`
	Count   []string `query:"_count" validate:"max=8"`
	Summary []string `query:"_summary" validate:"max=8"`
	Page    []string `query:"_page" validate:"max=8"`
}

type medicationForm struct {
	asked
	Patient    []string `form:"patient" validate:"max=8"`
	Count      []string `form:"_count" validate:"max=8"`
	Summary    []string `form:"_summary" validate:"max=8"`
	Page       []string `form:"_page" validate:"max=8"`
	FormFormat []string `form:"_format" validate:"max=8"`
	FormPretty []string `form:"_pretty" validate:"max=8"`
}

func (req observationForm) query() observationQuery {
	req.Format = append(req.Format, req.FormFormat...)
	return observationQuery{req.asked, req.Patient, req.Code, req.Count, req.Summary, req.Page}
}

func (req medicationForm) query() medicationQuery {
	req.Format = append(req.Format, req.FormFormat...)
	return medicationQuery{req.asked, req.Patient, req.Count, req.Summary, req.Page}
}

func (req observationQuery) paging() paging { return paging{req.Count, req.Summary, req.Page} }

// partSearch asks for a page of the parts of one patient.
type partSearch struct {
	Patient string   // an id that may be one of a patient; empty: no patient has what was sent
	Codes   []string // as the client sent them, of each list one; none: any
	From    int      // how many are on the pages before
	Count   int      // 0: their number is asked for
	linked  bool     // it came with a link
}

func (a *API) searchObservations(ctx context.Context, req observationQuery) (bundle[observation], error) {
	return a.observations(ctx, req, "query")
}

func (a *API) searchObservationsByForm(ctx context.Context, req observationForm) (bundle[observation], error) {
	return a.observations(ctx, req.query(), "form")
}

func (a *API) searchMedications(ctx context.Context, req medicationQuery) (bundle[medicationRequest], error) {
	return a.medications(ctx, req, "query")
}

func (a *API) searchMedicationsByForm(ctx context.Context, req medicationForm) (bundle[medicationRequest], error) {
	return a.medications(ctx, req.query(), "form")
}

func (a *API) observations(ctx context.Context, req observationQuery, in string) (bundle[observation], error) {
	return partsOf(ctx, a, "Observation", req, in, func(ctx context.Context, q partSearch) (all []observation, err error) {
		answer, err := run(ctx, a, a.observationsOf(q.Patient))
		if err != nil {
			return nil, err
		}
		for i := range answer.Value {
			o := &answer.Value[i]
			if !slices.ContainsFunc(q.Codes, func(list string) bool { return !codesOf(list)(o.Code) }) {
				all = append(all, observationOf(o))
			}
		}
		return all, nil
	})
}

func (a *API) medications(ctx context.Context, req medicationQuery, in string) (bundle[medicationRequest], error) {
	like := observationQuery{asked: req.asked, Patient: req.Patient, Count: req.Count, Summary: req.Summary, Page: req.Page}
	return partsOf(ctx, a, "MedicationRequest", like, in, func(ctx context.Context, q partSearch) (all []medicationRequest, err error) {
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

// resource has an id, which its URL ends with, a time of its last change, and one of the care
// that it is about: a day or a moment as FHIR writes it; empty for what is about none.
type resource interface {
	identity() string
	changed() time.Time
	cared() string
}

func (p patient) identity() string           { return p.ID }
func (o observation) identity() string       { return o.ID }
func (m medicationRequest) identity() string { return m.ID }

func (p patient) changed() time.Time           { return p.Meta.LastUpdated }
func (o observation) changed() time.Time       { return o.Meta.LastUpdated }
func (m medicationRequest) changed() time.Time { return m.Meta.LastUpdated }

func (p patient) cared() string           { return "" }
func (o observation) cared() string       { return o.Effective.UTC().Format(time.RFC3339) }
func (m medicationRequest) cared() string { return m.AuthoredOn }

// partsOf answers a search for parts of a patient, all of which find returns.
func partsOf[R resource](ctx context.Context, a *API, kind string, req observationQuery, in string, find func(context.Context, partSearch) ([]R, error)) (b bundle[R], err error) {
	if err := req.acceptable(); err != nil {
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
	if err := b.linkSelf(a.pages, kind, base, req.used(in, q), q); err != nil || to == total || q.Count == 0 {
		return b, err
	}
	q.From = to
	return b, b.linkNext(a.pages, kind, base, q)
}

func (a *API) partConditions(kind string, req observationQuery, in, base string) (q partSearch, err error) {
	token, err := req.paging().token(in, req.Patient, req.Code)
	if err != nil {
		return q, err
	}
	if token != "" {
		q, err = open[partSearch](a.pages, kind, token)
		q.linked = true
		return q, err
	}
	patients, err := texts(in, "patient", req.Patient, 300)
	if err != nil {
		return q, err
	}
	if len(patients) == 0 {
		return q, fault(in, "patient", "is required: whose "+kind+" resources, such as P000042")
	}
	if q.Count, err = req.paging().size(in, req.lenient()); err != nil {
		return q, err
	}
	if q.Codes, err = texts(in, "code", req.Code, 500); err != nil {
		return q, err
	}
	for i, text := range patients {
		if strings.Contains(text, ",") {
			return q, fault(in, "patient", "is one patient: ask for each alone")
		}
		id := strings.TrimPrefix(strings.TrimPrefix(text, base+"/"), "Patient/")
		if _, err := patientapi.ParseID(id); err != nil || i > 0 && id != q.Patient {
			q.Patient = "" // nothing is of two patients
			break
		}
		q.Patient = id
	}
	return q, nil
}

// used are the parameters that a search by URL has taken into account; empty for a form, and
// for a page that was linked to.
func (req observationQuery) used(in string, q partSearch) string {
	if in == "form" || q.linked {
		return ""
	}
	v := url.Values{"patient": given(req.Patient), "_count": {strconv.Itoa(q.Count)}}
	if len(q.Codes) > 0 {
		v["code"] = q.Codes
	}
	return v.Encode()
}
