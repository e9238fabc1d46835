package fhir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/examples/patientapi/export"
	"github.com/spillway-go/spillway/route"
)

// An export is written as it is made: a page of patients at a time, and for each the
// observations. It keeps no more than that, and goes on when the client has read. To the
// limiter in front it is a stream: it holds no slot, and takes its turn for each
// question to the store, behind everybody else.

const (
	exportPage = 100      // patients
	exportPart = 32 << 10 // bytes that are sent at once
)

// everything answers with all there is about one patient.
func (a *API) everything(ctx context.Context, req everythingRequest) (route.Stream, error) {
	return a.aboutOne(ctx, req.ID, req.asked, req.wishes())
}

// everythingByBody is the same for parameters in a body.
func (a *API) everythingByBody(ctx context.Context, req everythingBody) (route.Stream, error) {
	w, err := req.wishes(req.lenient())
	if err != nil {
		return route.Stream{}, err
	}
	return a.aboutOne(ctx, req.ID, req.asked, w)
}

func (a *API) aboutOne(ctx context.Context, id string, req asked, w wishes) (route.Stream, error) {
	if err := req.acceptable(); err != nil {
		return route.Stream{}, err
	}
	if _, err := patientapi.ParseID(id); err != nil {
		return route.Stream{}, patientapi.ErrNotFound
	}
	visit := access.FromContext(ctx)
	if err := visit.Touch(id); err != nil {
		return route.Stream{}, err
	}
	want, err := a.wanted(visit, id, w)
	if err != nil {
		return route.Stream{}, err
	}
	e := a.newStream(ctx, "/Patient/"+id+"/$everything", want)
	return e.answer(func() error {
		return e.write(patientapi.PatientSearch{IDs: []string{id}, Limit: 1})
	}), nil
}

// everybody answers with all there is. Few of these run at one time.
func (a *API) everybody(ctx context.Context, req everybodyRequest) (route.Stream, error) {
	return a.aboutAll(ctx, req.asked, req.wishes())
}

// everybodyByBody is the same for parameters in a body.
func (a *API) everybodyByBody(ctx context.Context, req everybodyBody) (route.Stream, error) {
	w, err := req.wishes(req.lenient())
	if err != nil {
		return route.Stream{}, err
	}
	return a.aboutAll(ctx, req.asked, w)
}

func (a *API) aboutAll(ctx context.Context, req asked, w wishes) (route.Stream, error) {
	if err := req.acceptable(); err != nil {
		return route.Stream{}, err
	}
	want, err := a.wanted(access.FromContext(ctx), "", w)
	if err != nil {
		return route.Stream{}, err
	}
	e := a.newStream(ctx, "/Patient/$everything", want)
	return e.answer(func() error {
		permit, err := a.exports.TryAcquire(ctx)
		if err != nil {
			return err
		}
		defer permit.Release()
		return e.write(patientapi.PatientSearch{Limit: exportPage, After: want.After})
	}), nil
}

// stream is one answer in the making.
type stream struct {
	api   *API
	ctx   context.Context
	visit *access.Visit
	want  want
	path  string
	base  string
	begun bool  // its head is written, or will be once the page is full
	more  bool  // than the page that is wanted
	place place // behind what was written
	first place // of this page; zero once its first patient is behind

	out     io.Writer
	buffer  bytes.Buffer
	encoder *json.Encoder
	entries int  // resources
	listed  bool // there is an entry
}

func (a *API) newStream(ctx context.Context, path string, w want) *stream {
	e := &stream{api: a, ctx: ctx, visit: access.FromContext(ctx), want: w, path: path, base: baseOf(ctx), first: w.place}
	e.place.After = w.After
	e.encoder = json.NewEncoder(&e.buffer)
	return e
}

func (e *stream) answer(write func() error) route.Stream {
	return route.Stream{ContentType: mediaType, Write: func(w io.Writer) error { e.out = w; return write() }}
}

// write sends all patients that q finds, and all about them. Where q names ids it is
// patientapi.ErrNotFound if none is a patient's.
func (e *stream) write(q patientapi.PatientSearch) error {
	for {
		page, err := turn(e, func(ctx context.Context, p *patientapi.Page) error { return e.api.cfg.Store.Search(ctx, q, p) })
		if err != nil {
			return err
		}
		found, more := page.Value.Patients, page.Value.More && len(page.Value.Patients) > 0
		if len(found) == 0 && q.IDs != nil {
			return patientapi.ErrNotFound
		}
		if err := e.visit.Touch(idsOf(found)...); err != nil {
			return err
		}
		if err := e.begin(); err != nil {
			return err
		}
		if err := e.patients(found); errors.Is(err, errFull) {
			e.more, more = true, false
		} else if err != nil {
			return err
		}
		if more {
			q.After = found[len(found)-1].ID
		}
		page.Release()
		if !more {
			return e.end()
		}
	}
}

// begin sends the head, once, and what is withheld. From then on the answer is a stream. A page is
// none: its links are known when it is full.
func (e *stream) begin() error {
	if e.begun {
		return nil
	}
	e.begun = true
	if e.want.Count > 0 {
		return e.withhold()
	}
	if err := e.head(&e.buffer); err != nil {
		return err
	}
	if err := e.withhold(); err != nil {
		return err
	}
	return e.send()
}

// head writes what is before the entries.
func (e *stream) head(w *bytes.Buffer) error {
	links := []link{{"self", e.base + e.path + e.want.query()}}
	if e.more {
		next := e.want
		next.place = e.place
		token, err := seal(e.api.pages, e.path, next)
		if err != nil {
			return err
		}
		links = append(links, link{"next", e.base + e.path + "?_page=" + token})
	}
	text, err := json.Marshal(links)
	if err == nil {
		w.WriteString(`{"resourceType":"Bundle","type":"searchset","link":` + string(text))
	}
	return err
}

func (e *stream) end() error {
	if e.listed {
		e.buffer.WriteByte(']')
	}
	e.buffer.WriteString("}\n")
	if e.want.Count > 0 {
		var page bytes.Buffer
		if err := e.head(&page); err != nil {
			return err
		}
		_, _ = e.buffer.WriteTo(&page)
		e.buffer = page
	}
	return e.send()
}

// errFull says that the page is.
var errFull = errors.New("fhir: the page is full")

func (e *stream) patients(found []patientapi.Patient) error {
	for i := range found {
		p := &found[i]
		for _, t := range export.Types {
			if !slices.Contains(e.want.Types, t) || !e.visit.Shows(t) || e.first.behind(t) {
				continue
			}
			if err := e.resources(t, p); err != nil {
				return err
			}
		}
		e.place, e.first = place{After: p.ID}, place{}
	}
	if e.want.Count > 0 {
		return nil
	}
	return e.send()
}

func (e *stream) resources(t access.Resource, p *patientapi.Patient) error {
	var observations []patientapi.Observation
	if t == access.Observations {
		all, err := turn(e, e.api.observationsOf(p.ID))
		if err != nil {
			return err
		}
		observations = all.Value
	}
	mode := "include"
	if t == access.Patients {
		mode = "match"
	}
	skip := 0
	if e.first.Type == t {
		skip = e.first.From
	}
	e.place.Type, e.place.From = t, 0
	for r := range Resources(t, p, observations) {
		if r := r.(resource); !e.want.has(r) {
			continue
		} else if e.place.From < skip { // it is on a page before
			e.place.From++
			continue
		} else if e.want.Count > 0 && e.entries == e.want.Count {
			return errFull
		} else if err := e.add(string(t), r.identity(), r, mode); err != nil {
			return err
		}
		e.place.From++
	}
	return nil
}

// add writes the entry of a resource, and sends what there is if it is enough.
func (e *stream) add(kind, id string, resource any, mode string) error {
	e.entries++
	if err := e.list(entry[any]{e.base + "/" + kind + "/" + id, resource, found{mode}}); err != nil {
		return err
	}
	if e.buffer.Len() < exportPart || e.want.Count > 0 {
		return nil
	}
	return e.send()
}

// list writes an entry.
func (e *stream) list(one entry[any]) error {
	if e.listed {
		e.buffer.WriteByte(',')
	} else {
		e.buffer.WriteString(`,"entry":[` + "\n")
	}
	e.listed = true
	return e.encoder.Encode(one)
}

// withhold says which types are left out because the token does not open them.
func (e *stream) withhold() error {
	hidden := hiddenOf(e.visit, e.want.Types)
	if len(hidden) == 0 {
		return nil
	}
	return e.list(entry[any]{Resource: operationOutcome{ResourceType: "OperationOutcome", Issue: []issue{{
		Severity: "information", Code: "suppressed", Diagnostics: "the token does not open these, and they are left out: " + strings.Join(hidden, ", "),
	}}}, Search: found{"outcome"}})
}

// hiddenOf are those of types that the caller may not have.
func hiddenOf(v *access.Visit, types []access.Resource) (hidden []string) {
	for _, t := range types {
		if !v.Shows(t) {
			hidden = append(hidden, string(t))
		}
	}
	return hidden
}

// send waits until the client has room for what there is.
func (e *stream) send() error {
	if e.buffer.Len() == 0 {
		return nil
	}
	_, err := e.out.Write(e.buffer.Bytes())
	e.buffer.Reset()
	return err
}
