package route

import "reflect"

// validate checks the rules of every field that was sent, except for members of a JSON body, which
// its decoder has checked.
//
// A zero value may be an absent one. The XML decoder has checked zero values that were sent. From a
// codec, zero counts as absent. A codec may also set values that JSON cannot express, such as a
// time with an offset of a day.
func (b *binder) validate(s *scratch, kind bodyKind, v reflect.Value) {
	if s.bound = len(s.faults); s.incomplete {
		kind = bodyNone // members may be missing because reading stopped
	}
	fields := b.plan.checks
	if kind == bodyJSON {
		fields = b.plan.ruledParams
	}
	checker{s, kind}.checkFields(fields, v)
}

// check notes the rules that v breaks. The path leads to v.
func check(s *scratch, rules []rule, v reflect.Value) {
	for i := range rules {
		if !rules[i].ok(v) {
			s.faultAtPath(rules[i].detail)
		}
	}
}

type checker struct {
	s    *scratch
	kind bodyKind
}

// checkFields checks the fields of the request type.
func (c checker) checkFields(fields []*field, v reflect.Value) {
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
				c.s.pushMember(name)
				c.field(f, f.of(v))
				c.s.pop()
			}
		case c.s.present&f.bit != 0:
			c.text(f, f.of(v))
		case f.required && (f.source != fromBody || f.form != ""):
			c.s.addParam(f, "is required")
		}
	}
}

// text checks a field that was sent as text.
func (c checker) text(f *field, v reflect.Value) {
	for detail := range f.violations(f.shape.deref(v)) {
		c.s.addParam(f, detail)
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
		for i := range min(v.Len(), f.maxElems) {
			c.s.pushElement(i)
			check(c.s, f.each, v.Index(i))
			c.s.pop()
		}
	}
	c.checkParts(s, v)
}

// absent notes an absent required member. The XML decoder has already done so.
func (c checker) absent(f *field) {
	if f.required && c.kind == bodyCodec {
		c.s.faultAtPath("is required")
	}
}

// checkParts checks the members and elements of a value.
func (c checker) checkParts(s *shape, v reflect.Value) {
	if !c.needsCheck(s) {
		return
	}
	switch s.kind {
	case kindFloat, kindCustom:
		if !s.encodable(v) {
			c.s.faultAtPath(s.must)
		}
	case kindObject:
		for _, f := range s.fields {
			name := f.json
			if c.kind == bodyXML {
				name = f.xml
			}
			if name == "" || !f.required && !f.ruled() && !c.needsCheck(f.shape) {
				continue
			}
			c.s.pushMember(name)
			c.field(f, f.of(v))
			c.s.pop()
		}
	case kindList:
		for i := range v.Len() {
			c.s.pushElement(i)
			c.elem(s.elem, v.Index(i))
			c.s.pop()
		}
	case kindMap:
		for each := v.MapRange(); each.Next(); {
			c.s.pushMember(each.Key().String())
			c.elem(s.elem, each.Value())
			c.s.pop()
		}
	}
}

// needsCheck reports whether a value of shape s needs a check. JSON may not express a value from a codec.
func (c checker) needsCheck(s *shape) bool { return s.checked || s.fragile && c.kind == bodyCodec }

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
	c.checkParts(s, v)
}
