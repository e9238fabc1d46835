package fhir

import (
	"context"
	"net/url"
	"strconv"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/access"
)

const (
	defaultCount = 20
	maxCount     = 100 // resources on a page; who asks for more gets these, and a link
	maxIDs       = 100 // in one search
)

// patientQuery is a search of patients by URL, patientForm the same by a form: what is
// in a form is in no log of URLs. The format may be in the URL of a form, and nothing else.
type patientQuery struct {
	asked
	ID         []string `query:"_id" validate:"max=8"`
	Identifier []string `query:"identifier" validate:"max=8"`
	Name       []string `query:"name" validate:"max=8"`
	Birthdate  []string `query:"birthdate" validate:"max=8"`
	Updated    []string `query:"_lastUpdated" validate:"max=8"`
	Count      []string `query:"_count" validate:"max=8"`
	Summary    []string `query:"_summary" validate:"max=8"`
	Page       []string `query:"_page" validate:"max=8"`
}

type patientForm struct {
	asked
	ID         []string `form:"_id" validate:"max=8"`
	Identifier []string `form:"identifier" validate:"max=8"`
	Name       []string `form:"name" validate:"max=8"`
	Birthdate  []string `form:"birthdate" validate:"max=8"`
	Updated    []string `form:"_lastUpdated" validate:"max=8"`
	Count      []string `form:"_count" validate:"max=8"`
	Summary    []string `form:"_summary" validate:"max=8"`
	Page       []string `form:"_page" validate:"max=8"`
	FormFormat []string `form:"_format" validate:"max=8"`
	FormPretty []string `form:"_pretty" validate:"max=8"`
}

func (req patientForm) query() patientQuery {
	req.Format = append(req.Format, req.FormFormat...)
	return patientQuery{req.asked, req.ID, req.Identifier, req.Name, req.Birthdate, req.Updated, req.Count, req.Summary, req.Page}
}

func (req patientQuery) paging() paging { return paging{req.Count, req.Summary, req.Page} }

// patientKind is that of pages of patients.
const patientKind = "Patient"

func (a *API) searchPatients(ctx context.Context, req patientQuery) (bundle[patient], error) {
	return a.patients(ctx, req, "query")
}

func (a *API) searchPatientsByForm(ctx context.Context, req patientForm) (bundle[patient], error) {
	return a.patients(ctx, req.query(), "form")
}

// patients answers a search whose parameters came in a query or a form.
func (a *API) patients(ctx context.Context, req patientQuery, in string) (b bundle[patient], err error) {
	if err := req.acceptable(); err != nil {
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
	base := baseOf(ctx) + "/Patient"
	if q.Limit == 0 {
		return a.patientCount(ctx, base, req, in, q, some)
	}
	made := new(patientapi.Page)
	if some {
		answer, err := run(ctx, a, func(ctx context.Context, p *patientapi.Page) error {
			return a.cfg.Store.Search(ctx, q.PatientSearch, p)
		})
		if err != nil {
			return b, err
		}
		defer answer.Release() // patientOf keeps nothing of it
		made = &answer.Value
	}
	if err := visit.Touch(idsOf(made.Patients)...); err != nil {
		return b, err
	}
	return a.patientBundle(base, req, in, q, made)
}

// patientCount is the answer to a search for the number of patients alone. Where they are as
// few as a page may hold, the request is about them as a search is: a number of one tells of
// that patient what was asked for.
func (a *API) patientCount(ctx context.Context, base string, req patientQuery, in string, q patientSearch, some bool) (b bundle[patient], err error) {
	total := 0
	if some {
		few := q.PatientSearch
		few.After, few.Limit = "", maxCount
		answer, err := run(ctx, a, func(ctx context.Context, p *patientapi.Page) error { return a.cfg.Store.Search(ctx, few, p) })
		if err != nil {
			return b, err
		}
		found, more := idsOf(answer.Value.Patients), answer.Value.More
		answer.Release()
		if total = len(found); more {
			counted, err := run(ctx, a, func(ctx context.Context, n *int) (err error) {
				*n, err = a.cfg.Store.Count(ctx, few)
				return err
			})
			if err != nil {
				return b, err
			}
			total = counted.Value
		} else if err := access.FromContext(ctx).Touch(found...); err != nil {
			return b, err
		}
	}
	b = newBundle[patient]()
	b.Total = &total
	return b, b.linkSelf(a.pages, patientKind, base, req.used(in, q), q.PatientSearch)
}

// patientSearch is a search of patients, and whether it came with a link to a page.
type patientSearch struct {
	patientapi.PatientSearch
	linked bool
}

// conditions are what req asks for; some is false where no patient can match. A Limit of 0
// asks for the number of patients alone.
func (a *API) conditions(req patientQuery, in string) (q patientSearch, some bool, err error) {
	token, err := req.paging().token(in, req.ID, req.Identifier, req.Name, req.Birthdate, req.Updated)
	if err != nil {
		return q, false, err
	}
	if token != "" {
		q.linked = true
		q.PatientSearch, err = open[patientapi.PatientSearch](a.pages, patientKind, token)
		return q, true, err
	}
	if q.Limit, err = req.paging().size(in, req.lenient()); err != nil {
		return q, false, err
	}
	lists, err := texts(in, "_id", req.ID, 1000)
	if err != nil {
		return q, false, err
	}
	known := true // whether a patient may have such an id
	for _, list := range lists {
		ids, possible, ok := patientIDs(list)
		if !ok {
			return q, false, fault(in, "_id", "must be at most 100 ids, separated by commas")
		}
		known = known && possible
		q.IDs = fewer(q.IDs, ids)
	}
	names, err := texts(in, "name", req.Name, 100)
	if err != nil {
		return q, false, err
	}
	identifiers, err := texts(in, "identifier", req.Identifier, 200)
	if err != nil {
		return q, false, err
	}
	registered, err := identified(in, &q.PatientSearch, names, identifiers)
	if err != nil {
		return q, false, err
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
	if some = known && registered && possible && ever; !some {
		q.IDs = []string{} // for the link to this page
	}
	return q, some, nil
}

func idsOf(patients []patientapi.Patient) []string {
	ids := make([]string, len(patients))
	for i := range patients {
		ids[i] = patients[i].ID
	}
	return ids
}

// patientBundle is the answer to q.
func (a *API) patientBundle(base string, req patientQuery, in string, q patientSearch, page *patientapi.Page) (b bundle[patient], err error) {
	b = newBundle[patient]()
	for i := range page.Patients {
		b.add(base+"/"+page.Patients[i].ID, patientOf(&page.Patients[i]))
	}
	if q.After == "" && !page.More {
		total := len(page.Patients)
		b.Total = &total
	}
	if err := b.linkSelf(a.pages, patientKind, base, req.used(in, q), q.PatientSearch); err != nil || !page.More || len(page.Patients) == 0 {
		return b, err
	}
	q.After = page.Patients[len(page.Patients)-1].ID
	return b, b.linkNext(a.pages, patientKind, base, q.PatientSearch)
}

// used are the parameters that a search by URL has taken into account; empty for a form, and
// for a page that was linked to.
func (req patientQuery) used(in string, q patientSearch) string {
	if in == "form" || q.linked {
		return ""
	}
	v := url.Values{"_count": {strconv.Itoa(q.Limit)}}
	for name, values := range map[string][]string{
		"_id": req.ID, "identifier": req.Identifier, "name": req.Name, "birthdate": req.Birthdate, "_lastUpdated": unescaped(req.Updated),
	} {
		if values = given(values); len(values) > 0 {
			v[name] = values
		}
	}
	return v.Encode()
}
