package route

import (
	"errors"
	"net/http"
	"reflect"

	"github.com/spillway-go/spillway/route/internal/wire"
)

// bind fills v, a zeroed request, from all sources, and then validates it. It returns an
// *InvalidError that lists all faults, or another error if the body could not be read. The body
// comes first.
func (c *core) bind(s *wire.Scratch, w http.ResponseWriter, r *http.Request, values pathValues, v reflect.Value) error {
	s.AllowUnknown, s.Request = c.allowUnknown, r
	kind := wire.None
	if c.plan.Body() {
		var err error
		if kind, err = c.bindBody(s, w, r, v); err != nil {
			return err
		}
	} else if err := c.read(s, w, r); err != nil { // read and dropped
		return err
	}
	switch {
	case values != nil:
	case unclean(r) && c.plan.HasPath():
		return errNotFound
	case c.pathValue != nil:
		values = lookup{r, c.pathValue}
	default:
		values = r
	}
	c.binder.Parameters(s, values, r.URL.RawQuery, r.Header, v)
	c.binder.Validate(s, kind, v)
	if len(s.Faults) == 0 && c.plan.Validates {
		addInvalid(s, v.Addr().Interface().(interface{ Validate() error }).Validate())
	}
	if len(s.Faults) == 0 {
		return nil
	}
	faults := make([]Fault, len(s.Faults))
	for i, f := range s.Faults {
		faults[i] = Fault(f)
	}
	return &InvalidError{faults}
}

// lookup calls Config.PathValue.
type lookup struct {
	request *http.Request
	value   func(r *http.Request, name string) string
}

func (l lookup) PathValue(name string) string { return l.value(l.request, name) }

// addInvalid notes the result of a Validate method: the faults of an *InvalidError, or the error's
// text.
func addInvalid(s *wire.Scratch, err error) {
	if err == nil {
		return
	}
	if invalid, ok := errors.AsType[*InvalidError](err); ok {
		for _, f := range invalid.Faults {
			s.Add(wire.Fault(f))
		}
		return
	}
	s.Add(wire.Fault{Detail: err.Error()})
}
