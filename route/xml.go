package route

import (
	"bytes"
	"encoding/xml"
	"io"
	"reflect"
)

// bindXML binds an XML document. The root element may have any name. Elements
// and attributes that the type does not have are faults and never reach it, so
// that no element can name a field which comes from elsewhere.
func (c *core) bindXML(s *scratch, v reflect.Value) {
	filter := &xmlFilter{s: s, lax: c.lax, most: c.limits.Depth, decoder: xml.NewDecoder(bytes.NewReader(s.body))}
	filter.levels = append(filter.levels, c.plan.members)
	before := len(s.faults)
	err := xml.NewTokenDecoder(filter).Decode(v.Addr().Interface())
	if err == nil && !filter.done() {
		err = errMalformed
	}
	if err != nil && len(s.faults) == before {
		s.fault(Fault{Pointer: "#", Detail: "is not valid XML for this operation"})
	}
}

// xmlFilter passes on the tokens that a shape knows.
type xmlFilter struct {
	s       *scratch
	decoder *xml.Decoder
	lax     bool
	most    int
	levels  []*shape // of the open elements; nil accepts anything
	root    bool     // the root element was opened
}

// Token returns the next known token.
func (x *xmlFilter) Token() (xml.Token, error) {
	for {
		token, err := x.decoder.Token()
		if err != nil {
			return nil, err
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			if _, end := token.(xml.EndElement); end {
				x.levels = x.levels[:len(x.levels)-1]
				if len(x.levels) > 1 {
					x.s.up()
				}
			}
			if _, directive := token.(xml.Directive); directive {
				x.s.fault(Fault{Pointer: "#", Detail: "must have no document type"})
				return nil, errMalformed
			}
			return token, nil
		}
		if !x.root {
			x.root = true
			x.levels = append(x.levels, x.levels[0])
			return x.attributes(start), nil
		}
		if len(x.levels) > x.most {
			x.s.here("is nested too deeply")
			return nil, errMalformed
		}
		inside := x.levels[len(x.levels)-1]
		next, known := x.child(inside, start.Name.Local, false)
		if !known {
			if !x.lax {
				x.s.member(start.Name.Local)
				x.s.here("is not a member")
				x.s.up()
			}
			if err := x.decoder.Skip(); err != nil {
				return nil, err
			}
			continue
		}
		x.s.member(start.Name.Local)
		x.levels = append(x.levels, next)
		return x.attributes(start), nil
	}
}

// child returns the shape of an element or attribute inside another.
func (x *xmlFilter) child(inside *shape, name string, attr bool) (*shape, bool) {
	if inside == nil {
		return nil, true
	}
	for _, f := range inside.fields {
		if f.xml != name || f.attr != attr {
			continue
		}
		s := f.shape.bare()
		for s.kind == kindList {
			s = s.elem.bare()
		}
		switch s.kind {
		case kindObject:
			return s, true
		case kindCustom, kindAny, kindMap:
			return nil, true
		}
		return &shape{}, true // text: no elements inside
	}
	return nil, false
}

// attributes keeps the attributes that are members.
func (x *xmlFilter) attributes(start xml.StartElement) xml.StartElement {
	inside := x.levels[len(x.levels)-1]
	if inside == nil {
		return start
	}
	var known []xml.Attr
	for _, a := range start.Attr {
		if a.Name.Space == "xmlns" || a.Name.Local == "xmlns" {
			continue
		}
		if _, ok := x.child(inside, a.Name.Local, true); ok {
			known = append(known, a)
		} else if !x.lax {
			x.s.member("@" + a.Name.Local)
			x.s.here("is not a member")
			x.s.up()
		}
	}
	start.Attr = known
	return start
}

// done reads on to the end: after the root element only comments and space may
// come.
func (x *xmlFilter) done() bool {
	for {
		token, err := x.decoder.Token()
		if err != nil {
			return err == io.EOF
		}
		switch t := token.(type) {
		case xml.StartElement, xml.EndElement, xml.Directive:
			return false
		case xml.CharData:
			if len(bytes.TrimSpace(t)) > 0 {
				return false
			}
		}
	}
}
