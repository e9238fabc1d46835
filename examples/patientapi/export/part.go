package export

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/access"
)

const (
	pageSize = 100 // patients that are asked for at once
	atOnce   = 4   // patients whose observations are

	// longestPart is after how long a part ends that the store is slow for: what is not on
	// disk is lost when the process is.
	longestPart = 10 * time.Second
)

// writer writes a part in a folder of its own.
type writer struct {
	x     *stored
	disk  disk
	tmp   string
	part  part
	ids   []string // of patients with a line
	files map[access.Resource]*output
}

type output struct {
	file    file
	buffer  *bufio.Writer
	encoder *json.Encoder
	lines   lines
}

// Write implements io.Writer, and counts.
func (o *output) Write(p []byte) (int, error) {
	o.lines.Bytes += int64(len(p))
	return o.buffer.Write(p)
}

// next writes the part behind the last one. It has fewer patients than PartSize where err
// says why, or there are no more. It is false if this was all.
func (e *Exports) next(ctx context.Context, ticket string, x *stored, attempt int) (more bool, err error) {
	tmp, err := e.disk.begin(ticket)
	if err != nil {
		return true, err
	}
	defer os.RemoveAll(tmp) // once renamed, nothing is there
	w := &writer{x: x, disk: e.disk, tmp: tmp, part: x.last(), files: map[access.Resource]*output{}}
	w.part.Attempt, w.part.Files = attempt, nil
	defer w.close()
	more, err = e.fill(ctx, w)
	if errors.Is(err, ErrDisk) || w.part.Last == x.last().Last {
		return more, err
	}
	// Whatever has stopped it, these patients are whole.
	if settled := w.settle(ticket); settled != nil {
		return true, settled
	}
	return more, err
}

// fill asks for patients and writes them.
func (e *Exports) fill(ctx context.Context, w *writer) (more bool, err error) {
	request := &w.x.request
	observed := slices.Contains(request.Types, access.Observations)
	begun := time.Now()
	for most := w.part.Total + e.cfg.PartSize; w.part.Total < most && time.Since(begun) < longestPart; {
		q := patientapi.PatientSearch{After: w.part.Last, Limit: min(pageSize, most-w.part.Total)}
		if !observed { // those have a time of their own
			q.Updated.Since = request.Since
		}
		page, err := Turn(ctx, e.cfg.Runner, e.cfg.Timeout, func(ctx context.Context, dst *patientapi.Page) error { return e.cfg.Store.Search(ctx, q, dst) })
		if err != nil {
			return true, err
		}
		found := page.Value.Patients
		observations := make([][]patientapi.Observation, len(found))
		if observed {
			err = e.observe(ctx, found, observations)
		}
		for i := 0; i < len(found) && err == nil; i++ {
			err = w.add(&e.cfg, &found[i], observations[i])
		}
		more = page.Value.More && len(found) > 0
		page.Release()
		if err != nil || !more {
			return more || err != nil, err
		}
	}
	return true, nil
}

// observe asks for the observations of some patients, of a few at one time.
func (e *Exports) observe(ctx context.Context, patients []patientapi.Patient, all [][]patientapi.Observation) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var asking sync.WaitGroup
	for worker := range atOnce {
		asking.Go(func() {
			for i := worker; i < len(patients) && ctx.Err() == nil; i += atOnce {
				id := patients[i].ID
				answer, err := Turn(ctx, e.cfg.Runner, e.cfg.Timeout, func(ctx context.Context, dst *[]patientapi.Observation) (err error) {
					*dst, err = e.cfg.Store.Observations(ctx, id)
					return err
				})
				if err != nil {
					cancel(err)
					return
				}
				all[i] = answer.Value
			}
		})
	}
	asking.Wait()
	return context.Cause(ctx)
}

// add writes the resources of a patient.
func (w *writer) add(cfg *Config, p *patientapi.Patient, observations []patientapi.Observation) error {
	since := w.x.request.Since
	observations = slices.DeleteFunc(observations, func(o patientapi.Observation) bool { return o.Updated.Before(since) })
	wrote := false
	for _, t := range w.x.request.Types {
		if t != access.Observations && p.Updated.Before(since) {
			continue
		}
		for r := range cfg.Resources(t, p, observations) {
			if err := w.line(t, r); err != nil {
				return errors.Join(ErrDisk, err)
			}
			wrote = true
		}
	}
	if wrote {
		w.ids = append(w.ids, p.ID)
	}
	w.part.Last, w.part.Total = p.ID, w.part.Total+1
	return nil
}

func (w *writer) line(t access.Resource, resource any) error {
	o := w.files[t]
	if o == nil {
		f, err := w.disk.create(filepath.Join(w.tmp, string(t)))
		if err != nil {
			return err
		}
		o = &output{file: f, buffer: bufio.NewWriterSize(f, 64<<10), lines: lines{Type: t}}
		o.encoder = json.NewEncoder(o)
		w.files[t] = o
	}
	o.lines.Count++
	return o.encoder.Encode(resource)
}

// settle makes the part one of the export.
func (w *writer) settle(ticket string) error {
	for _, t := range Types {
		if o := w.files[t]; o != nil {
			if err := errors.Join(o.buffer.Flush(), o.file.Sync(), o.file.Close()); err != nil {
				return errors.Join(ErrDisk, err)
			}
			w.part.Files = append(w.part.Files, o.lines)
		}
	}
	w.part.At = time.Now().UTC()
	err := w.disk.write(filepath.Join(w.tmp, peopleName), w.ids)
	if err == nil {
		err = w.disk.write(filepath.Join(w.tmp, partName), w.part)
	}
	if err == nil {
		err = w.disk.settle(w.tmp, w.disk.path(ticket, folder(len(w.x.parts)+1)))
	}
	switch {
	case err == nil:
		w.x.parts = append(w.x.parts, w.part)
		return nil
	case errors.Is(err, errTaken), errors.Is(err, ErrNotFound):
		return err
	}
	return errors.Join(ErrDisk, err)
}

func (w *writer) close() {
	for _, o := range w.files {
		_ = o.file.Close() // it is not used, or is closed already
	}
}
