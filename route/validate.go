package route

import (
	"errors"
	"iter"
	"reflect"
	"time"
)

// validate checks the rules of every field that was sent, those of a JSON body
// excepted, whose decoder has checked them.
//
// A zero value may be an absent one. The decoder of XML has checked those that
// were sent; from a codec, zero counts as absent. What a codec has put there may be
// what no JSON can say, such as a time with an offset of a day.
func (c *core) validate(s *scratch, kind bodyKind, v reflect.Value) {
	fields := c.plan.checks
	if kind == bodyJSON {
		fields = c.plan.asked
	}
	checker{s, kind}.top(fields, v)
}

// check notes which of the rules v breaks, which the path leads to.
func check(s *scratch, rules []rule, v reflect.Value) {
	for i := range rules {
		if !rules[i].ok(v) {
			s.here(rules[i].detail)
		}
	}
}

// broken lists what is wrong with v, where there is no path to an element of it.
func (f *field) broken(v reflect.Value) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range f.rules {
			if !f.rules[i].ok(v) && !yield(f.rules[i].detail) {
				return
			}
		}
		for i := range f.each {
			for j := range v.Len() {
				if f.each[i].ok(v.Index(j)) {
					continue
				}
				if !yield("each " + f.each[i].detail) {
					return
				}
				break
			}
		}
	}
}

type checker struct {
	s    *scratch
	kind bodyKind
}

// top checks the fields of the request itself.
func (c checker) top(fields []*field, v reflect.Value) {
	for _, f := range fields {
		asText := f.source != fromBody && f.source != fromJSON || c.kind == bodyForm || c.kind == bodyMultipart
		switch {
		case f.source == fromText && c.kind != bodyText, f.source == fromJSON && c.kind != bodyCodec:
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
	for detail := range f.broken(f.shape.behind(v)) {
		c.s.param(f, detail)
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
			c.absent(f)
			return
		}
		s = s.elem
	}
	sure := s != f.shape // a pointer or Optional was there, so the value was
	if !sure && v.IsZero() {
		c.absent(f)
		return
	}
	check(c.s, f.rules, v)
	if len(f.each) > 0 {
		for i := range min(v.Len(), f.most) {
			c.s.element(i)
			check(c.s, f.each, v.Index(i))
			c.s.up()
		}
	}
	c.inside(s, v)
}

// absent is about a member that is not there. The decoder of XML has said
// so.
func (c checker) absent(f *field) {
	if f.required && c.kind == bodyCodec {
		c.s.here("is required")
	}
}

// inside checks the members and elements of a value.
func (c checker) inside(s *shape, v reflect.Value) {
	if !c.looks(s) {
		return
	}
	switch s.kind {
	case kindFloat, kindCustom:
		if !s.encodable(v) {
			c.s.here(s.must)
		}
	case kindObject:
		for _, f := range s.fields {
			name := f.json
			if c.kind == bodyXML {
				name = f.xml
			}
			if name == "" || !f.required && !f.ruled() && !c.looks(f.shape) {
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

// looks reports whether there is something to check in a value of that shape.
func (c checker) looks(s *shape) bool { return s.checked || s.fragile && c.kind == bodyCodec }

// encodable reports whether JSON can say what v is, a float or a custom value.
func (s *shape) encodable(v reflect.Value) bool {
	switch {
	case s.kind == kindFloat:
		return v.Float()-v.Float() == 0
	case s.typ == timeType:
		return writable(v.Interface().(time.Time))
	case s.typ == numberType:
		return v.String() == "" || isNumber(v.String()) // encoding/json writes 0 for nothing
	case s.moment > 0:
		return writable(v.Field(s.moment - 1).Interface().(time.Time))
	}
	return true
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
