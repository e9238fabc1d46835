package route

import (
	"errors"
	"net/http"
	"reflect"
)

// bind fills v, a zeroed request, from all sources, and then validates it. It returns an
// *InvalidError that lists all faults, or another error if the body could not be read. The body
// comes first.
func (c *core) bind(s *scratch, w http.ResponseWriter, r *http.Request, values PathValues, v reflect.Value) error {
	s.allowUnknown = c.allowUnknown || c.allowUnknownIf != nil && c.allowUnknownIf(r)
	kind := bodyNone
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
	c.binder.parameters(s, kind, values, r.URL.RawQuery, r.Header, v)
	c.binder.validate(s, kind, v)
	if len(s.faults) == 0 && c.plan.Validates {
		addInvalid(s, v.Addr().Interface().(interface{ Validate() error }).Validate())
	}
	if len(s.faults) == 0 {
		return nil
	}
	faults := make([]Fault, len(s.faults))
	for i, f := range s.faults {
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
func addInvalid(s *scratch, err error) {
	if err == nil {
		return
	}
	if invalid, ok := errors.AsType[*InvalidError](err); ok {
		for _, f := range invalid.Faults {
			s.add(wireFault(f))
		}
		return
	}
	s.add(wireFault{Detail: err.Error()})
}
