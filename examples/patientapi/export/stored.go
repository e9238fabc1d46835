package export

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/jobqueue"
)

// part is what is on disk of a part, beside its files.
type part struct {
	Last    string    `json:"last"`    // id of the last patient looked at
	Total   int       `json:"total"`   // patients looked at, those of the parts before included
	Attempt int       `json:"attempt"` // the run of the job that made it
	At      time.Time `json:"at"`
	Files   []lines   `json:"files"`
}

// lines is one file of a part.
type lines struct {
	Type  access.Resource `json:"type"`
	Count int             `json:"count"`
	Bytes int64           `json:"bytes"`
}

// ending is how an export has ended.
type ending struct {
	State  State     `json:"state"`
	Reason string    `json:"reason,omitempty"`
	Parts  int       `json:"parts"`
	At     time.Time `json:"at"`
}

// outcome is that of the job. The engine may not have heard of it yet.
func (e *ending) outcome() error {
	if e.State == Failed {
		return jobqueue.Dead(e.Reason)
	}
	return nil
}

// stored is an export as it is on disk.
type stored struct {
	request Request
	parts   []part
	end     *ending // nil: it goes on
}

func (x *stored) state() State {
	switch {
	case x.end != nil:
		return x.end.State
	case len(x.parts) > 0:
		return Running
	}
	return Accepted
}

// last is the last part; the zero part before the first.
func (x *stored) last() part {
	if len(x.parts) == 0 {
		return part{}
	}
	return x.parts[len(x.parts)-1]
}

func (x *stored) changed() time.Time {
	switch {
	case x.end != nil:
		return x.end.At
	case len(x.parts) > 0:
		return x.last().At
	}
	return x.request.Started
}

// load reads an export. The error matches ErrNotFound if there is none, and ErrDamaged if
// it is not as it was written.
func (d disk) load(ticket string) (*stored, error) {
	x := &stored{}
	if !access.Ticket(ticket) {
		return nil, ErrNotFound
	}
	if _, err := os.Stat(d.path(ticket)); errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	var end ending
	switch err := read(d.path(ticket, endName, endName+".json"), &end); {
	case err == nil:
		x.end = &end
	case !errors.Is(err, fs.ErrNotExist):
		return x, err
	}
	err := read(d.path(ticket, requestName), &x.request)
	if err == nil {
		err = x.readParts(func(n int) string { return d.path(ticket, folder(n), partName) })
	}
	if _, gone := os.Stat(d.path(ticket)); errors.Is(gone, fs.ErrNotExist) { // meanwhile
		return nil, ErrNotFound
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %s is missing", ErrDamaged, requestName)
	}
	if err == nil {
		err = x.check()
	}
	return x, err
}

// check finds what is JSON and cannot be.
func (x *stored) check() error {
	switch {
	case x.request.Started.IsZero() || len(x.request.Types) == 0:
		return fmt.Errorf("%w: %s says nothing", ErrDamaged, requestName)
	case x.end == nil:
		return nil
	case x.end.State != Complete && x.end.State != Failed:
		return fmt.Errorf("%w: it has no known end", ErrDamaged)
	case x.end.State == Complete && x.end.Parts != len(x.parts):
		return fmt.Errorf("%w: it has %d of %d parts", ErrDamaged, len(x.parts), x.end.Parts)
	}
	return nil
}

func (x *stored) readParts(name func(n int) string) error {
	for n := 1; ; n++ {
		var p part
		switch err := read(name(n), &p); {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		}
		before, _ := patientapi.ParseID(x.last().Last)
		if last, err := patientapi.ParseID(p.Last); err != nil || last <= before {
			return fmt.Errorf("%w: part %d is not behind the one before", ErrDamaged, n)
		}
		x.parts = append(x.parts, p)
	}
}
