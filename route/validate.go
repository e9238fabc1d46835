package route

import (
	"errors"
	"reflect"
)

// validate checks the rules of every field that was sent.
//
// Of a zero value in a body the decoder does not tell whether it was sent. Only
// if that matters, because a rule refuses it, a JSON body is walked to find out.
// In XML and in the types of codecs a zero value counts as absent.
func (c *core) validate(s *scratch, kind bodyKind, v reflect.Value) {
	if !c.plan.checked {
		return
	}
	check := checker{s, kind}
	check.top(c.plan, v)
	if !s.doubtful {
		return
	}
	s.faults = s.faults[:0]
	s.sent = map[string]struct{}{}
	shape := c.plan.members
	if c.plan.whole != nil {
		shape = c.plan.whole.shape
	}
	if c.walk(s, shape) {
		check.top(c.plan, v)
	}
}

type checker struct {
	s    *scratch
	kind bodyKind
}

// top checks the fields of the request itself.
func (c checker) top(p *plan, v reflect.Value) {
	for _, f := range p.fields {
		if !f.required && len(f.rules) == 0 && !f.shape.checked {
			continue
		}
		asText := f.source != fromBody && f.source != fromJSON || c.kind == bodyForm || c.kind == bodyMultipart
		switch {
		case f.source == fromText && c.kind != bodyText, f.source == fromJSON && c.kind != bodyJSON && c.kind != bodyCodec:
			continue // the body is another one
		case f.source == fromBody && (c.kind == bodyText || c.kind == bodyNone):
			continue
		case f.source == fromJSON:
			c.field(f, f.of(v))
		case !asText:
			name := f.json
			if c.kind == bodyXML {
				name = f.xml
			}
			if name != "" {
				c.s.member(name)
				c.field(f, f.of(v))
				c.s.up()
			}
		case c.s.present&f.bit != 0:
			c.text(f, f.of(v))
		case f.required && (f.source != fromBody || f.form != ""):
			c.s.param(f, "is required")
		}
	}
}

// text checks a field that was sent as text.
func (c checker) text(f *field, v reflect.Value) {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if f.shape.kind == kindOptional {
		v = v.Field(0)
	}
	for i := range f.rules {
		if !f.rules[i].ok(v) {
			c.s.param(f, f.rules[i].detail)
		}
	}
}

// field checks a member that the path leads to.
func (c checker) field(f *field, v reflect.Value) {
	s := f.shape
	for s.kind == kindPointer || s.kind == kindOptional {
		absent := false
		if s.kind == kindPointer {
			if absent = v.IsNil(); !absent {
				v = v.Elem()
			}
		} else if absent = !v.Field(1).Bool(); !absent {
			v = v.Field(0)
		}
		if absent {
			if f.required {
				c.s.here("is required")
			}
			return
		}
		s = s.elem
	}
	sure := s != f.shape // a pointer or Optional was there, so the value was
	if (f.required || len(f.rules) > 0) && !sure && s.kind != kindObject && v.IsZero() && !c.zero(f, v) {
		return
	}
	for i := range f.rules {
		if !f.rules[i].ok(v) {
			c.s.here(f.rules[i].detail)
		}
	}
	if s.checked {
		c.inside(s, v)
	}
}

// zero decides about a zero value that may be an absent one. It reports whether
// the value was sent, so that the rules apply.
func (c checker) zero(f *field, v reflect.Value) bool {
	if c.kind != bodyJSON {
		if f.required {
			c.s.here("is required")
		}
		return false
	}
	if c.s.sent != nil {
		_, sent := c.s.sent[c.s.pointer()]
		if !sent && f.required { // null: an absent one was found by the walk
			c.s.here("is required")
		}
		return sent
	}
	refused := f.required
	for i := range f.rules {
		refused = refused || !f.rules[i].ok(v)
	}
	c.s.doubtful = c.s.doubtful || refused
	return false
}

// inside checks the members and elements of a value.
func (c checker) inside(s *shape, v reflect.Value) {
	switch s.kind {
	case kindObject:
		for _, f := range s.fields {
			name := f.json
			if c.kind == bodyXML {
				name = f.xml
			}
			if name == "" || !f.required && len(f.rules) == 0 && !f.shape.checked {
				continue
			}
			c.s.member(name)
			c.field(f, f.of(v))
			c.s.up()
		}
	case kindList:
		for i := range v.Len() {
			c.s.element(i)
			c.elem(s.elem, v.Index(i))
			c.s.up()
		}
	case kindMap:
		for each := v.MapRange(); each.Next(); {
			c.s.member(each.Key().String())
			c.elem(s.elem, each.Value())
			c.s.up()
		}
	}
}

// elem checks an element, which has no rules of its own.
func (c checker) elem(s *shape, v reflect.Value) {
	for ; s.kind == kindPointer || s.kind == kindOptional; s = s.elem {
		switch {
		case s.kind == kindOptional:
			v = v.Field(0)
		case v.IsNil():
			return
		default:
			v = v.Elem()
		}
	}
	c.inside(s, v)
}

// faultsOf notes what a Validate method returned: the faults of an
// *InvalidError, or the error's text.
func (s *scratch) faultsOf(err error) {
	if err == nil {
		return
	}
	if invalid, ok := errors.AsType[*InvalidError](err); ok {
		for _, f := range invalid.Faults {
			s.fault(f)
		}
		return
	}
	s.fault(Fault{Detail: err.Error()})
}
