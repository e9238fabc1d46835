package route

import (
	"bytes"
	"reflect"
)

// bindJSON binds a JSON body.
//
// The decoder of the standard library does the work. It stops at the first
// fault, and version 1 of it lets much pass, so the body is also walked by our
// own reader when that could find more: always before version 1, and before
// version 2 only when there is something in it that version 2 would accept.
// Both builds accept the same.
func (c *core) bindJSON(s *scratch, v reflect.Value) {
	p := c.plan
	shape, target := p.members, v
	if p.whole != nil {
		shape, target = p.whole.shape, p.whole.of(v)
	}
	walked := alwaysWalk || c.suspicious(s.body)
	if walked && !c.walk(s, shape) {
		return
	}
	if err := decodeJSON(s.body, target.Addr().Interface(), !c.lax); err != nil {
		if walked || c.walk(s, shape) {
			s.fault(Fault{Pointer: "#", Detail: "is not valid"}) // a decoder of the user's own said so
		}
	}
}

var null = []byte("null")

// suspicious reports whether version 2 of the decoder would let something pass
// that is a fault here: too much depth, a null for what is never null, a member
// with the Go name of a field that is none.
func (c *core) suspicious(body []byte) bool {
	if bytes.Contains(body, null) {
		return true
	}
	if n := bytes.Count(body, []byte{'{'}); n+bytes.Count(body, []byte{'['}) > c.limits.Depth {
		return true
	}
	if len(c.plan.hidden) > 0 && !c.lax {
		if bytes.Contains(body, []byte(`\u`)) {
			return true // a name may be written that way
		}
		for _, name := range c.plan.hidden {
			if bytes.Contains(body, name) {
				return true
			}
		}
	}
	return false
}
