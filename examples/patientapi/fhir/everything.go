package fhir

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

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

type everythingRequest struct {
	Accept []string `header:"Accept"`
	Format string   `query:"_format"`
	ID     string   `path:"id"`
}

type everybodyRequest struct {
	Accept []string `header:"Accept"`
	Format string   `query:"_format"`
}

// everything answers with all there is about one patient.
func (a *API) everything(ctx context.Context, req everythingRequest) (route.Stream, error) {
	if err := acceptable(req.Format, req.Accept); err != nil {
		return route.Stream{}, err
	}
	if _, err := patientapi.ParseID(req.ID); err != nil {
		return route.Stream{}, patientapi.ErrNotFound
	}
	if err := access.FromContext(ctx).Touch(req.ID); err != nil {
		return route.Stream{}, err
	}
	e := a.newStream(ctx, "/Patient/"+req.ID+"/$everything")
	return e.answer(func() error {
		return e.write(patientapi.PatientSearch{IDs: []string{req.ID}, Limit: 1})
	}), nil
}

// everybody answers with all there is. Few of these run at one time.
func (a *API) everybody(ctx context.Context, req everybodyRequest) (route.Stream, error) {
	if err := acceptable(req.Format, req.Accept); err != nil {
		return route.Stream{}, err
	}
	e := a.newStream(ctx, "/Patient/$everything")
	return e.answer(func() error {
		permit, err := a.exports.TryAcquire(ctx)
		if err != nil {
			return err
		}
		defer permit.Release()
		return e.write(patientapi.PatientSearch{Limit: exportPage})
	}), nil
}

// stream is one answer in the making.
type stream struct {
	api   *API
	ctx   context.Context
	visit *access.Visit
	self  string
	base  string
	begun bool // a part has been sent

	out     io.Writer
	buffer  bytes.Buffer
	encoder *json.Encoder
	entries int
}

func (a *API) newStream(ctx context.Context, path string) *stream {
	e := &stream{api: a, ctx: ctx, visit: access.FromContext(ctx), self: path, base: baseOf(ctx)}
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
		if err := e.patients(found); err != nil {
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

// begin sends the head, once. From then on the answer is a stream.
func (e *stream) begin() error {
	if e.begun {
		return nil
	}
	e.begun = true
	head, err := json.Marshal(link{"self", e.base + e.self})
	if err != nil {
		return err
	}
	e.buffer.WriteString(`{"resourceType":"Bundle","type":"searchset","link":[` + string(head) + `]`)
	return e.send()
}

func (e *stream) end() error {
	if e.entries > 0 {
		e.buffer.WriteByte(']')
	}
	e.buffer.WriteString("}\n")
	return e.send()
}

func (e *stream) patients(found []patientapi.Patient) error {
	for i := range found {
		p := &found[i]
		for _, t := range export.Types {
			if !e.visit.Shows(t) {
				continue
			}
			if err := e.resources(t, p); err != nil {
				return err
			}
		}
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
		if err := e.add(string(t), r.(resource).identity(), r, mode); err != nil {
			return err
		}
	}
	return nil
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
	if e.buffer.Len() < exportPart {
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
