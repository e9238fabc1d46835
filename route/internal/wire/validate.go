package wire

import (
	"reflect"

	"github.com/spillway-go/spillway/route/internal/shape"
)

// Validate checks the rules of every field that was sent, except for members of a JSON body, which
// its decoder has checked.
//
// A zero value may be an absent one. The XML decoder has checked zero values that were sent, and
// noted absent members that are required.
func (b *Binder) Validate(s *Scratch, kind Kind, v reflect.Value) {
	if s.bound = len(s.Faults); s.incomplete {
		kind = None // members may be missing because reading stopped
	}
	fields := b.Plan.Checks
	if kind == JSON {
		fields = b.Plan.RuledParams
	}
	checker{s, kind}.checkFields(fields, v)
}

// check notes the rules that v breaks. The path leads to v.
func check(s *Scratch, rules []shape.Rule, v reflect.Value) {
	for i := range rules {
		if !rules[i].OK(v) {
			s.faultAtPath(rules[i].Detail)
		}
	}
}

type checker struct {
	s    *Scratch
	kind Kind
}

// checkFields checks the fields of the request type.
func (c checker) checkFields(fields []*shape.Field, v reflect.Value) {
	for _, f := range fields {
		asText := f.Source != shape.FromBody || c.kind == Form || c.kind == Multipart
		switch {
		case f.Source == shape.FromText && c.kind != Text, f.Source == shape.FromJSON:
			continue // the body is of another kind
		case f.Source == shape.FromBody && (c.kind == Text || c.kind == None):
			continue
		case !asText:
			name := f.JSON
			if c.kind == XML {
				name = f.XML
			}
			if name != "" {
				c.s.pushMember(name)
				c.field(f, f.Of(v))
				c.s.pop()
			}
		case c.s.present&f.Bit != 0:
			c.text(f, f.Of(v))
		case f.Required && (f.Source != shape.FromBody || f.Form != ""):
			c.s.addParam(f, "is required")
		}
	}
}

// text checks a field that was sent as text.
func (c checker) text(f *shape.Field, v reflect.Value) {
	for detail := range f.Violations(f.Shape.Deref(v)) {
		c.s.addParam(f, detail)
	}
}

// field checks the member at the path.
func (c checker) field(f *shape.Field, v reflect.Value) {
	s := f.Shape
	for s.Kind == shape.Pointer || s.Kind == shape.Optional {
		absent := false
		if s.Kind == shape.Pointer {
			if absent = v.IsNil(); !absent {
				v = v.Elem()
			}
		} else if absent = !v.Field(1).Bool(); !absent {
			v = v.Field(0)
		}
		if absent {
			return
		}
		s = s.Elem
	}
	sure := s != f.Shape // a set pointer or Optional proves that the value was sent
	if !sure && v.IsZero() {
		return
	}
	check(c.s, f.Rules, v)
	if len(f.Each) > 0 {
		for i := range min(v.Len(), f.MaxElems) {
			c.s.pushElement(i)
			check(c.s, f.Each, v.Index(i))
			c.s.pop()
		}
	}
	c.checkParts(s, v)
}

// checkParts checks the members and elements of a value.
func (c checker) checkParts(s *shape.Shape, v reflect.Value) {
	if !s.Checked {
		return
	}
	switch s.Kind {
	case shape.Object:
		for _, f := range s.Fields {
			name := f.JSON
			if c.kind == XML {
				name = f.XML
			}
			if name == "" || !f.Required && !f.Ruled() && !f.Shape.Checked {
				continue
			}
			c.s.pushMember(name)
			c.field(f, f.Of(v))
			c.s.pop()
		}
	case shape.List:
		for i := range v.Len() {
			c.s.pushElement(i)
			c.elem(s.Elem, v.Index(i))
			c.s.pop()
		}
	case shape.Map:
		for each := v.MapRange(); each.Next(); {
			c.s.pushMember(each.Key().String())
			c.elem(s.Elem, each.Value())
			c.s.pop()
		}
	}
}

// elem checks an element, which has no rules of its own.
func (c checker) elem(s *shape.Shape, v reflect.Value) {
	for ; s.Kind == shape.Pointer || s.Kind == shape.Optional; s = s.Elem {
		switch {
		case s.Kind == shape.Optional:
			v = v.Field(0)
		case v.IsNil():
			return
		default:
			v = v.Elem()
		}
	}
	c.checkParts(s, v)
}
