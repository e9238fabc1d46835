package fhir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"

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
	begun bool // a part has been sent
	more  bool // than the page that is wanted
	place place
	skip  int // of the first patient, what is on the pages before

	out     io.Writer
	buffer  bytes.Buffer
	encoder *json.Encoder
	entries int
}

func (a *API) newStream(ctx context.Context, path string, w want) *stream {
	e := &stream{api: a, ctx: ctx, visit: access.FromContext(ctx), want: w, path: path, base: baseOf(ctx), skip: w.From}
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

// begin sends the head, once. From then on the answer is a stream. A page is none: its
// links are known when it is full.
func (e *stream) begin() error {
	if e.begun || e.want.Count > 0 {
		return nil
	}
	e.begun = true
	if err := e.head(&e.buffer); err != nil {
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
	if e.entries > 0 {
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
			if !slices.Contains(e.want.Types, t) || !e.visit.Shows(t) {
				continue
			}
			if err := e.resources(t, p); err != nil {
				return err
			}
		}
		e.place, e.skip = place{After: p.ID}, 0
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
	for r := range Resources(t, p, observations) {
		if r := r.(resource); !e.want.has(r) || !e.on() {
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

// on reports whether the next resource of a patient is not on a page before.
func (e *stream) on() bool {
	if e.skip == 0 {
		return true
	}
	e.skip--
	e.place.From++
	return false
}

// add writes an entry, and sends what there is if it is enough.
func (e *stream) add(kind, id string, resource any, mode string) error {
	if e.entries++; e.entries == 1 {
		e.buffer.WriteString(`,"entry":[` + "\n")
	} else {
		e.buffer.WriteByte(',')
	}
	if err := e.encoder.Encode(entry[any]{e.base + "/" + kind + "/" + id, resource, found{mode}}); err != nil {
		return err
	}
	if e.buffer.Len() < exportPart || e.want.Count > 0 {
		return nil
	}
	return e.send()
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
