package fhir

import (
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/examples/patientapi/export"
	"github.com/spillway-go/spillway/route"
)

// What a client may say of $everything, in a URL or, as Parameters, in a body.

type everythingRequest struct {
	ID string `path:"id"`
	everybodyRequest
}

type everybodyRequest struct {
	asked
	Type  []string `query:"_type" validate:"max=8"`
	Since []string `query:"_since" validate:"max=8"`
	Start []string `query:"start" validate:"max=8"`
	End   []string `query:"end" validate:"max=8"`
	Count []string `query:"_count" validate:"max=8"`
	Page  []string `query:"_page" validate:"max=8"`
}

func (req everybodyRequest) wishes() wishes {
	return wishes{"query", req.Type, req.Since, req.Start, req.End, req.Count, req.Page}
}

type everythingBody struct {
	ID string `path:"id"`
	everybodyBody
}

type everybodyBody struct {
	asked
	ResourceType string      `json:"resourceType" validate:"required,max=64"`
	Parameter    []parameter `json:"parameter" validate:"max=64"`
}

// parameter is one of the Parameters of FHIR, with the values that those of $everything have.
type parameter struct {
	Name    string                `json:"name" validate:"required,max=64"`
	Date    string                `json:"valueDate"`
	Instant string                `json:"valueInstant"`
	Integer route.Optional[int64] `json:"valueInteger"`
	Coded   string                `json:"valueCode"`
	String  string                `json:"valueString"`
}

// values returns those that the parameter has. FHIR allows one.
func (p parameter) values() []string {
	values := given([]string{p.Date, p.Instant, p.Coded, p.String})
	if p.Integer.Set {
		values = append(values, strconv.FormatInt(p.Integer.Value, 10))
	}
	return values
}

func (b everybodyBody) wishes(lenient bool) (wishes, error) {
	w := wishes{in: "body"}
	if b.ResourceType != "Parameters" {
		return w, fault(w.in, "resourceType", "must be Parameters")
	}
	for _, p := range b.Parameter {
		var to *[]string
		switch p.Name {
		case "_type":
			to = &w.types
		case "_since":
			to = &w.since
		case "start":
			to = &w.start
		case "end":
			to = &w.end
		case "_count":
			to = &w.count
		default:
			if lenient && !narrows("_type _since start end _count _page")(p.Name) {
				continue
			}
			return w, fault(w.in, p.Name, unknown[0])
		}
		values := p.values()
		if len(values) != 1 {
			return w, fault(w.in, p.Name, "must have one value: valueCode, valueInstant, valueDate or valueInteger")
		}
		*to = append(*to, values[0])
	}
	return w, nil
}

// bodied lets a body of nothing be Parameters without one.
func bodied(next http.Handler) http.Handler {
	const nothing = `{"resourceType":"Parameters"}`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(nothing)), int64(len(nothing))
			r.Header.Set("Content-Type", mediaType)
		}
		next.ServeHTTP(w, r)
	})
}

// wishes are the parameters as they came.
type wishes struct {
	in                                    string
	types, since, start, end, count, page []string
}

// want is what is wanted of $everything, and of which page.
type want struct {
	Types      []access.Resource // whatever of them the caller may not have is withheld, page by page
	Since      time.Time         `json:",omitzero"` // what has changed from then on
	Start, End time.Time         // of the care: a day from Start on, and before End; zero: open
	Count      int               // resources of a page; 0: all at once
	place

	asked  url.Values // what was taken into account
	linked string     // the link that it came with
}

// place is where a page begins: behind that patient, at the resources of that type that the next
// one has, and behind as many of them. A place does not depend on which types its reader may have.
type place struct {
	After string
	Type  access.Resource `json:",omitempty"` // empty: the first
	From  int
}

// behind reports whether all resources of a type are on the pages before.
func (p place) behind(t access.Resource) bool {
	return p.Type != "" && slices.Index(export.Types, t) < slices.Index(export.Types, p.Type)
}

// wanted returns what is wanted of that patient, or, without an id, of all.
func (a *API) wanted(v *access.Visit, id string, w wishes) (q want, err error) {
	path := "/Patient/$everything"
	if id != "" {
		path = "/Patient/" + id + "/$everything"
	}
	token, err := (paging{count: w.count, page: w.page}).token(w.in, w.types, w.since, w.start, w.end)
	if err != nil {
		return q, err
	}
	if token != "" {
		q, err = open[want](a.pages, path, token)
		q.linked = token
		return q, err
	}
	q.asked = url.Values{}
	if q.Types, err = typesOf(w.in, v, w.types); err != nil {
		return q, err
	}
	if len(given(w.types)) > 0 {
		q.asked["_type"] = given(w.types)
	}
	if q.Since, err = sinceOf(w.in, w.since, time.Now()); err != nil {
		return q, err
	}
	if !q.Since.IsZero() {
		q.asked.Set("_since", q.Since.Format(time.RFC3339))
	}
	for _, d := range []struct {
		name   string
		values []string
		set    func(span)
	}{{"start", w.start, func(s span) { q.Start = s.from }}, {"end", w.end, func(s span) {
		if written(s.to) { // else there is no end
			q.End = s.to
		}
	}}} {
		text, err := only(w.in, d.name, d.values)
		if err != nil {
			return q, err
		}
		if text == "" {
			continue
		}
		s, ok := parseDate(text)
		if !ok {
			return q, fault(w.in, d.name, "must be a year, a month or a day, such as 1980-02")
		}
		d.set(s)
		q.asked.Set(d.name, text)
	}
	text, err := only(w.in, "_count", w.count)
	if err != nil || text == "" {
		return q, err
	}
	count, err := strconv.Atoi(text)
	if err != nil || count < 1 {
		return q, fault(w.in, "_count", "must be a whole number, at least 1")
	}
	q.Count = min(count, maxCount)
	q.asked.Set("_count", strconv.Itoa(q.Count))
	return q, nil
}

// query is the end of the URL that asks for this page.
func (q want) query() string {
	switch {
	case q.linked != "":
		return "?_page=" + q.linked
	case len(q.asked) > 0:
		return "?" + q.asked.Encode()
	}
	return ""
}

// has reports whether the resource is wanted. What is about no care at any time is.
func (q want) has(r resource) bool {
	if r.changed().Before(q.Since) {
		return false
	}
	s, dated := parseInstant(r.cared())
	return !dated || (q.Start.IsZero() || s.to.After(q.Start)) && (q.End.IsZero() || s.from.Before(q.End))
}
