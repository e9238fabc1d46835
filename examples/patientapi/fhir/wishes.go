package fhir

import (
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/access"
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

func (p parameter) value() string {
	if p.Integer.Set {
		return strconv.FormatInt(p.Integer.Value, 10)
	}
	for _, value := range []string{p.Date, p.Instant, p.Coded, p.String} {
		if value != "" {
			return value
		}
	}
	return ""
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
			if lenient && !narrows("_type _since start end _count")(p.Name) {
				continue
			}
			return w, fault(w.in, p.Name, unknown[0])
		}
		if p.value() == "" {
			return w, fault(w.in, p.Name, "must have a value: valueCode, valueInstant, valueDate or valueInteger")
		}
		*to = append(*to, p.value())
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
	Types      []access.Resource
	Since      time.Time `json:",omitzero"` // what has changed from then on
	Start, End time.Time // of the care: a day from Start on, and before End; zero: open
	Count      int       // resources of a page; 0: all at once
	place

	asked  url.Values // what was taken into account
	linked string     // the link that it came with
}

// place is where a page begins: behind that patient, and as many resources of the next one.
type place struct {
	After string
	From  int
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
