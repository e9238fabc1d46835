package route

import (
	"errors"
	"iter"
	"reflect"
	"time"
)

// validate checks the rules of every field that was sent, except for members of a JSON body, which
// its decoder has checked.
//
// A zero value may be an absent one. The XML decoder has checked zero values that were sent. From a
// codec, zero counts as absent. A codec may also set values that JSON cannot express, such as a
// time with an offset of a day.
func (c *core) validate(s *scratch, kind bodyKind, v reflect.Value) {
	fields := c.plan.checks
	if kind == bodyJSON {
		fields = c.plan.asked
	}
	checker{s, kind}.top(fields, v)
}

// check notes the rules that v breaks. The path leads to v.
func check(s *scratch, rules []rule, v reflect.Value) {
	for i := range rules {
		if !rules[i].ok(v) {
			s.here(rules[i].detail)
		}
	}
}

// broken yields the faults of v, for a v whose elements have no path.
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

// top checks the fields of the request type.
func (c checker) top(fields []*field, v reflect.Value) {
	for _, f := range fields {
		asText := f.source != fromBody && f.source != fromJSON || c.kind == bodyForm || c.kind == bodyMultipart
		switch {
		case f.source == fromText && c.kind != bodyText, f.source == fromJSON && c.kind != bodyCodec:
			continue // the body is of another kind
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

// field checks the member at the path.
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
	sure := s != f.shape // a set pointer or Optional proves that the value was sent
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

// absent notes an absent required member. The XML decoder has already done so.
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

// looks reports whether a value of shape s needs a check. JSON may not express a value from a codec.
func (c checker) looks(s *shape) bool { return s.checked || s.fragile && c.kind == bodyCodec }

// encodable reports whether JSON can express v, a float or a custom value.
func (s *shape) encodable(v reflect.Value) bool {
	switch {
	case s.kind == kindFloat:
		return v.Float()-v.Float() == 0
	case s.typ == timeType:
		return writable(v.Interface().(time.Time))
	case s.typ == numberType:
		return v.String() == "" || isNumber(v.String()) // encoding/json writes 0 for an empty json.Number
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

// faultsOf notes the result of a Validate method: the faults of an *InvalidError, or the error's
// text.
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
