package fhir

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/route"
)

// byID asks for one resource, unless the client has it already.
type byID struct {
	asked
	ID            string   `path:"id"`
	NoneMatch     []string `header:"If-None-Match"`
	ModifiedSince string   `header:"If-Modified-Since"`
}

func (a *API) readPatient(ctx context.Context, req byID) (res route.Response[patient], err error) {
	id, err := req.of(ctx, func() (string, bool) { _, err := patientapi.ParseID(req.ID); return req.ID, err == nil })
	if err != nil {
		return res, err
	}
	answer, err := run(ctx, a, a.patientOf(id))
	if err != nil {
		return res, err
	}
	defer answer.Release() // patientOf keeps nothing of it
	r := patientOf(&answer.Value)
	return versioned(req, r.Meta, r), nil
}

func (a *API) readObservation(ctx context.Context, req byID) (res route.Response[observation], err error) {
	var n int
	id, err := req.of(ctx, func() (id string, ok bool) { id, n, ok = parsePartID(req.ID, 'o'); return id, ok })
	if err != nil {
		return res, err
	}
	answer, err := run(ctx, a, a.observationsOf(id))
	if err != nil {
		return res, err
	}
	for i := range answer.Value {
		if o := &answer.Value[i]; o.Number == n {
			r := observationOf(o)
			return versioned(req, r.Meta, r), nil
		}
	}
	return res, patientapi.ErrNotFound
}

func (a *API) readMedication(ctx context.Context, req byID) (res route.Response[medicationRequest], err error) {
	var n int
	id, err := req.of(ctx, func() (id string, ok bool) { id, n, ok = parsePartID(req.ID, 'm'); return id, ok })
	if err != nil {
		return res, err
	}
	answer, err := run(ctx, a, a.patientOf(id))
	if err != nil {
		return res, err
	}
	defer answer.Release() // medicationOf keeps nothing of it
	if n > len(answer.Value.Medications) {
		return res, patientapi.ErrNotFound
	}
	r := medicationOf(&answer.Value, n-1)
	return versioned(req, r.Meta, r), nil
}

// of returns whose resource is asked for, once the caller may have it. An id without the
// form of one is not found, as an id that no patient has.
func (req byID) of(ctx context.Context, parse func() (id string, ok bool)) (string, error) {
	if err := req.acceptable(); err != nil {
		return "", err
	}
	id, ok := parse()
	if !ok {
		return "", patientapi.ErrNotFound
	}
	return id, access.FromContext(ctx).Touch(id)
}

// versioned answers with r, or with 304 if that is the version that the client has.
func versioned[R any](req byID, m meta, r R) route.Response[R] {
	res := route.Response[R]{Body: r, Header: http.Header{
		"Etag":          {`W/"` + m.VersionID + `"`},
		"Last-Modified": {m.LastUpdated.UTC().Format(http.TimeFormat)},
	}}
	if req.has(m) {
		res.Code = http.StatusNotModified
	}
	return res
}

// has reports whether the client has that version. If-None-Match goes before
// If-Modified-Since (RFC 9110, section 13.2.2); a date that cannot be read is ignored.
func (req byID) has(m meta) bool {
	for _, tag := range req.NoneMatch {
		if tag == "*" || strings.TrimPrefix(tag, "W/") == `"`+m.VersionID+`"` {
			return true
		}
	}
	if len(req.NoneMatch) > 0 {
		return false
	}
	since, err := http.ParseTime(req.ModifiedSince)
	return err == nil && !m.LastUpdated.Truncate(time.Second).After(since)
}
