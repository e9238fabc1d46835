package route

import (
	"strconv"
	"strings"
)

// knowsParameter reports whether name cannot come from the client. Path names are in the pattern, and faults
// name only headers that the route looks up.
func (p *plan) knowsParameter(in, name string) bool {
	switch in {
	case "query":
		return p.query[name] != nil
	case "form":
		return p.form[name] != nil
	}
	return in == "path" || in == "header"
}

// knownPointer truncates a pointer after the last member or element that the types know. The keys of a map
// come from the client.
func (p *plan) knownPointer(pointer string) string {
	s := p.members
	if p.whole != nil {
		s = p.whole.shape.bare()
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
func (s *shape) part(token string) *shape {
	switch s.kind {
	case kindList:
		if _, err := strconv.ParseUint(token, 10, 31); err == nil {
			return s.elem.bare()
		}
	case kindObject:
		for _, f := range s.fields {
			if token != "" && (token == f.json || token == f.xml) {
				return f.shape.bare()
			}
		}
	}
	return nil
}
