package fhir

import (
	"context"
	"net/url"
	"strconv"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/route"
)

const (
	defaultCount = 20
	maxCount     = 100 // resources on a page; who asks for more gets these, and a link
	maxIDs       = 100 // in one search
)

// patientQuery is a search of patients by URL, patientForm the same by a form: what is
// in a form is in no log of URLs. They differ in their tags alone.
type patientQuery struct {
	Accept     []string            `header:"Accept"`
	Format     string              `query:"_format"`
	ID         string              `query:"_id" validate:"max=1000"`
	Identifier string              `query:"identifier" validate:"max=200,pattern=^\\P{C}*$" must:"be without control characters"`
	Name       string              `query:"name" validate:"max=100,pattern=^\\P{C}*$" must:"be without control characters"`
	Birthdate  []string            `query:"birthdate" validate:"max=8"`
	Updated    []string            `query:"_lastUpdated" validate:"max=8"`
	Count      route.Optional[int] `query:"_count" validate:"min=1"`
	Page       string              `query:"_page" validate:"max=4096"`
}

type patientForm struct {
	Accept     []string            `header:"Accept"`
	Format     string              `form:"_format"`
	ID         string              `form:"_id" validate:"max=1000"`
	Identifier string              `form:"identifier" validate:"max=200,pattern=^\\P{C}*$" must:"be without control characters"`
	Name       string              `form:"name" validate:"max=100,pattern=^\\P{C}*$" must:"be without control characters"`
	Birthdate  []string            `form:"birthdate" validate:"max=8"`
	Updated    []string            `form:"_lastUpdated" validate:"max=8"`
	Count      route.Optional[int] `form:"_count" validate:"min=1"`
	Page       string              `form:"_page" validate:"max=4096"`
}

// patientKind is that of pages of patients.
const patientKind = "Patient"

func (a *API) searchPatients(ctx context.Context, req patientQuery) (bundle[patient], error) {
	return a.patients(ctx, req, "query")
}

func (a *API) searchPatientsByForm(ctx context.Context, req patientForm) (bundle[patient], error) {
	return a.patients(ctx, patientQuery(req), "form")
}

// patients answers a search whose parameters came in a query or a form.
func (a *API) patients(ctx context.Context, req patientQuery, in string) (b bundle[patient], err error) {
	if err := acceptable(req.Format, req.Accept); err != nil {
		return b, err
	}
	q, some, err := a.conditions(req, in)
	if err != nil {
		return b, err
	}
	visit := access.FromContext(ctx)
	if own, restricted := visit.Own(); restricted && q.IDs == nil {
		q.IDs = []string{own}
	}
	if err := visit.Touch(q.IDs...); err != nil {
		return b, err
	}
	made := new(patientapi.Page)
	if some {
		answer, err := run(ctx, a, func(ctx context.Context, p *patientapi.Page) error { return a.cfg.Store.Search(ctx, q, p) })
		if err != nil {
			return b, err
		}
		defer answer.Release() // patientOf keeps nothing of it
		made = &answer.Value
	}
	if err := visit.Touch(idsOf(made.Patients)...); err != nil {
		return b, err
	}
	return a.patientBundle(baseOf(ctx)+"/Patient", req, in, q, made)
}

// conditions are what req asks for; some is false where no patient can match.
func (a *API) conditions(req patientQuery, in string) (q patientapi.PatientSearch, some bool, err error) {
	if req.Page != "" {
		q, err = open[patientapi.PatientSearch](a.pages, patientKind, req.Page)
		if err == nil && (req.ID != "" || req.Identifier != "" || req.Name != "" || len(req.Birthdate)+len(req.Updated) > 0 || req.Count.Set) {
			err = fault(in, "_page", "stands alone: it has the whole search in it")
		}
		return q, true, err
	}
	q.Limit = min(req.Count.Or(defaultCount), maxCount)
	var known, registered, ok bool // whether a patient may match; whether it can be read
	if q.IDs, known, ok = patientIDs(req.ID); !ok {
		return q, false, fault(in, "_id", "must be at most 100 ids, separated by commas")
	}
	if q.Identifier, registered, ok = identifierOf(req.Identifier); !ok {
		return q, false, fault(in, "identifier", `must be one value, system|value or system|, with \ before a comma or a bar that is part of it`)
	}
	if q.Name, ok = single(req.Name); !ok {
		return q, false, fault(in, "name", `must be one name, with \ before a comma that is part of it`)
	}
	born, possible, ok := between(req.Birthdate, parseDate)
	if !ok {
		return q, false, fault(in, "birthdate", "must be a year, a month or a day, such as 1980-02, with eq, ge, le, gt or lt before it or nothing")
	}
	q.Birth = days(born)
	changed, ever, ok := between(req.Updated, parseInstant)
	if !ok {
		return q, false, fault(in, "_lastUpdated", "must be a year, a month, a day or a moment with a zone, such as 2025-02-01T08:00:00Z, with eq, ge, le, gt or lt before it or nothing")
	}
	q.Updated = changed
	return q, known && registered && possible && ever, nil
}

func fault(in, parameter, detail string) error {
	return &route.InvalidError{Faults: []route.Fault{{In: in, Parameter: parameter, Detail: detail}}}
}

func idsOf(patients []patientapi.Patient) []string {
	ids := make([]string, len(patients))
	for i := range patients {
		ids[i] = patients[i].ID
	}
	return ids
}

// patientBundle is the answer to q.
func (a *API) patientBundle(base string, req patientQuery, in string, q patientapi.PatientSearch, page *patientapi.Page) (b bundle[patient], err error) {
	b = newBundle[patient]()
	for i := range page.Patients {
		b.add(base+"/"+page.Patients[i].ID, patientOf(&page.Patients[i]))
	}
	if q.After == "" && !page.More {
		total := len(page.Patients)
		b.Total = &total
	}
	asked := req.used(q.Limit)
	if in == "form" || req.Page != "" {
		asked = ""
	}
	if err := b.linkSelf(a.pages, patientKind, base, asked, q); err != nil || !page.More || len(page.Patients) == 0 {
		return b, err
	}
	q.After = page.Patients[len(page.Patients)-1].ID
	return b, b.linkNext(a.pages, patientKind, base, q)
}

// used are the parameters that a search has taken into account.
func (req patientQuery) used(count int) string {
	v := url.Values{"_count": {strconv.Itoa(count)}}
	for name, value := range map[string]string{"_id": req.ID, "identifier": req.Identifier, "name": req.Name} {
		if value != "" {
			v.Set(name, value)
		}
	}
	for name, values := range map[string][]string{"birthdate": req.Birthdate, "_lastUpdated": req.Updated} {
		if len(values) > 0 {
			v[name] = values
		}
	}
	return v.Encode()
}
