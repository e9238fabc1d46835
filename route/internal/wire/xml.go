package wire

import (
	"bytes"
	"encoding/xml"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/route/internal/shape"
)

// XML binds an XML document. The root element may have any name, and namespaces are ignored.
// encoding/xml only reads the tokens, because its decoder would stop at the first fault and accept
// the Go name of any field as an element.
func (b *Binder) XML(s *Scratch, v reflect.Value) {
	s.memory = b.Limits.Memory
	d := xmlDecoder{tokens: xml.NewDecoder(bytes.NewReader(s.Body)), s: s, b: b, maxDepth: b.Limits.Depth}
	before := len(s.Faults)
	root, ok := d.outside()
	ok = ok && root != nil && d.object(*root, b.Plan.Members, v)
	if ok {
		root, ok = d.outside()
		ok = ok && root == nil
	}
	s.path = s.path[:0]
	s.incomplete = !ok
	if !ok && (len(s.Faults) == before || !d.reported) {
		s.faultAtPath("is not valid XML")
	}
}

// xmlDecoder is a recursive decoder of XML into a shape. It notes every fault, with a pointer, and
// continues. Its methods return false when they cannot continue.
type xmlDecoder struct {
	tokens   *xml.Decoder
	s        *Scratch
	depth    int
	maxDepth int
	b        *Binder
	reported bool // the reason to stop is already a fault
}

// outside reads the tokens before or after the root element, up to its start tag or the end.
func (d *xmlDecoder) outside() (*xml.StartElement, bool) {
	for {
		token, err := d.tokens.Token()
		if err != nil {
			return nil, err == io.EOF
		}
		switch t := token.(type) {
		case xml.StartElement:
			return &t, true
		case xml.Directive:
			return nil, d.stop("must have no document type")
		case xml.CharData:
			if len(bytes.TrimSpace(t)) > 0 {
				return nil, false
			}
		}
	}
}

func (d *xmlDecoder) stop(detail string) bool {
	d.s.faultAtPath(detail)
	d.reported = true
	return false
}

func (d *xmlDecoder) allocate(t reflect.Type) bool {
	d.reported = !d.s.allocate(1, t)
	return !d.reported
}

// object reads the rest of the element that start begins into a struct.
func (d *xmlDecoder) object(start xml.StartElement, s *shape.Shape, v reflect.Value) bool {
	if d.depth++; d.depth > d.maxDepth {
		return d.stop("is nested too deeply")
	}
	var seen uint64
	for _, a := range start.Attr {
		if a.Name.Space == "xmlns" || a.Name.Local == "xmlns" {
			continue
		}
		d.s.pushMember("@" + a.Name.Local)
		if f := xmlField(s, a.Name.Local, true); f != nil && seen&f.Bit == 0 {
			seen |= f.Bit
			before := len(d.s.Faults)
			d.set(f.Shape, f.Of(v), a.Value)
			d.zero(f, f.Of(v), before)
		} else if f != nil || !d.b.ignores(d.s, a.Name.Local) {
			d.s.faultAtPath(unexpected(f))
		}
		d.s.pop()
	}
	for {
		token, err := d.tokens.Token()
		if err != nil {
			return false
		}
		switch t := token.(type) {
		case xml.Directive:
			return d.stop("must have no document type")
		case xml.StartElement:
			d.s.pushMember(t.Name.Local)
			f := xmlField(s, t.Name.Local, false)
			if f != nil && (seen&f.Bit == 0 || f.Shape.Bare().Kind == shape.List) {
				seen |= f.Bit
				before := len(d.s.Faults)
				if !d.element(t, f.Shape, f, f.Of(v)) {
					return false
				}
				d.zero(f, f.Of(v), before)
			} else {
				if f != nil || !d.b.ignores(d.s, t.Name.Local) {
					d.s.faultAtPath(unexpected(f))
				}
				if !d.skip() {
					return false
				}
			}
			d.s.pop()
		case xml.EndElement:
			d.depth--
			for _, f := range s.Fields {
				if f.Required && f.XML != "" && seen&f.Bit == 0 {
					d.s.pushMember(f.XML)
					d.s.faultAtPath("is required")
					d.s.pop()
				}
			}
			return true
		}
	}
}

func unexpected(f *shape.Field) string {
	if f == nil {
		return "is not a member"
	}
	return MoreThanOnce
}

// zero checks the rules of a zero value that is known to have been sent. before is the number of
// faults before the value was read; after further faults zero does nothing.
func (d *xmlDecoder) zero(f *shape.Field, v reflect.Value, before int) {
	if len(d.s.Faults) == before && len(f.Rules) > 0 && f.Shape.Kind != shape.Pointer && f.Shape.Kind != shape.Optional && v.IsZero() {
		check(d.s, f.Rules, v)
	}
}

// xmlField returns the field of an element's or attribute's name, or nil.
func xmlField(s *shape.Shape, name string, attr bool) *shape.Field {
	for _, f := range s.Fields {
		if f.XML == name && f.Attr == attr {
			return f
		}
	}
	return nil
}

// element reads an element into a value of shape s, the shape of a field or of a list element.
func (d *xmlDecoder) element(start xml.StartElement, s *shape.Shape, of *shape.Field, v reflect.Value) bool {
	switch s.Kind {
	case shape.Pointer:
		if v.IsNil() { // not nil if a list continues
			if !d.allocate(s.Elem.Type) {
				return false
			}
			v.Set(reflect.New(s.Elem.Type))
		}
		return d.element(start, s.Elem, of, v.Elem())
	case shape.Optional:
		v.Field(1).SetBool(true)
		return d.element(start, s.Elem, of, v.Field(0))
	case shape.List:
		n := v.Len()
		if n <= of.MaxElems { // one element more, for the rule to detect
			if !d.allocate(s.Elem.Type) {
				return false
			}
			v.Grow(1)
			v.SetLen(n + 1)
		}
		if n >= of.MaxElems {
			return d.skip()
		}
		d.s.pushElement(n)
		ok := d.element(start, s.Elem, shape.Element, v.Index(n))
		d.s.pop()
		return ok
	case shape.Object:
		return d.object(start, s, v)
	}
	before := len(d.s.Faults)
	text, ok := d.text(start)
	if ok && len(d.s.Faults) == before {
		d.set(s, v, text)
	}
	return ok
}

// skip reads the rest of an element and drops it. As in JSON, an element without child elements
// adds no depth.
func (d *xmlDecoder) skip() bool {
	for depth := d.depth; ; {
		token, err := d.tokens.Token()
		if err != nil {
			return false
		}
		switch token.(type) {
		case xml.StartElement:
			if depth++; depth > d.maxDepth {
				return d.stop("is nested too deeply")
			}
		case xml.EndElement:
			if depth == d.depth {
				return true
			}
			depth--
		}
	}
}

// set sets a value to text.
func (d *xmlDecoder) set(s *shape.Shape, v reflect.Value, text string) {
	if s.Bare().Kind != shape.String {
		text = strings.TrimSpace(text)
	}
	if s.Set == nil {
		d.s.faultAtPath("cannot be sent as XML")
	} else if fault := s.Set(v, text); fault != "" {
		d.s.faultAtPath(fault)
	}
}

// text reads the text of an element.
func (d *xmlDecoder) text(start xml.StartElement) (string, bool) {
	if slices.ContainsFunc(start.Attr, func(a xml.Attr) bool { return !d.b.ignores(d.s, a.Name.Local) }) {
		d.s.faultAtPath("must have no attributes")
	}
	var b strings.Builder
	for {
		token, err := d.tokens.Token()
		if err != nil {
			return "", false
		}
		switch t := token.(type) {
		case xml.CharData:
			b.Write(t)
		case xml.EndElement:
			return b.String(), true
		case xml.Directive:
			return "", d.stop("must have no document type")
		case xml.StartElement:
			d.s.faultAtPath("must be text")
			if !d.skip() {
				return "", false
			}
		}
	}
}
