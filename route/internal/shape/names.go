package shape

import (
	"strconv"
	"strings"
)

// KnowsParameter reports whether name, in a fault, is a name of the request type and not one that a
// client chose. Path names are in the pattern, and faults name only headers that the plan has.
func (p *Plan) KnowsParameter(in, name string) bool {
	switch in {
	case "query":
		return p.Query[name] != nil
	case "form":
		return p.Form[name] != nil
	}
	return in == "path" || in == "header"
}

// KnownPointer truncates a pointer after the last member or element that the types know. The keys
// of a map come from the client.
func (p *Plan) KnownPointer(pointer string) string {
	s := p.Members
	if p.Whole != nil {
		s = p.Whole.Shape.Bare()
	}
	end := len("#")
	for rest, more := strings.CutPrefix(pointer, "#/"); more; {
		var token string
		token, rest, more = strings.Cut(rest, "/")
		if s = s.part(token); s == nil {
			return pointer[:end]
		}
		end += len("/") + len(token)
	}
	return pointer
}

// part returns the shape that a token of a pointer leads to, or nil if the shape is unknown. A
// member whose name needs an escape in a pointer counts as unknown.
func (s *Shape) part(token string) *Shape {
	switch s.Kind {
	case List:
		if _, err := strconv.ParseUint(token, 10, 31); err == nil {
			return s.Elem.Bare()
		}
	case Object:
		for _, f := range s.Fields {
			if token != "" && (token == f.JSON || token == f.XML) {
				return f.Shape.Bare()
			}
		}
	}
	return nil
}
