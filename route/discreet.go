package route

import (
	"slices"
	"strconv"
	"strings"
)

// discreet takes from faults what a client chose: names that are no parameter or
// field, and from where a pointer leads to no member. A name that is known is not
// the client's own.
func (p *plan) discreet(faults []Fault) []Fault {
	faults = slices.Clone(faults) // an error may be a variable of the user's
	for i := range faults {
		f := &faults[i]
		if f.Parameter != "" && !p.knows(f.In, f.Parameter) {
			f.Parameter = ""
		}
		f.Pointer = p.known(f.Pointer)
	}
	return faults
}

// knows reports whether a client cannot have chosen that name: the path has the
// names of the pattern, and no fault names a header that was not looked for.
func (p *plan) knows(in, name string) bool {
	switch in {
	case "query":
		return p.query[name] != nil
	case "form":
		return p.form[name] != nil
	}
	return in == "path" || in == "header"
}

// known cuts a pointer behind the last member or element that the types know.
// The keys of a map are a client's own.
func (p *plan) known(pointer string) string {
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

// part returns the shape that a token of a pointer leads to; nil if that is not
// known. A member whose name is written otherwise in a pointer counts as unknown.
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
