package route

import (
	"iter"
	"net/http"
	"net/url"
	"reflect"
	"strings"
)

// bind fills v, a zeroed request, from all sources, and then validates it. It returns an
// *InvalidError that lists all faults, or another error if the body could not be read.
//
// The body comes first. A codec may set a field that is not a member, by its Go name. Such a field
// is then cleared, or overwritten from its real source.
func (c *core) bind(s *scratch, w http.ResponseWriter, r *http.Request, values PathValues, v reflect.Value) error {
	p := c.plan
	s.lax = c.lax || c.laxIf != nil && c.laxIf(r)
	kind := bodyNone
	if p.body() {
		var err error
		if kind, err = c.bindBody(s, w, r, v); err != nil {
			return err
		}
	} else if err := c.read(s, w, r); err != nil { // read and dropped
		return err
	}
	if kind == bodyCodec {
		for _, f := range p.foreign {
			f.of(v).SetZero()
		}
	}
	for _, f := range p.params {
		switch f.source {
		case fromPath:
			switch {
			case values != nil:
				s.text(f, v, values.PathValue(f.name))
			case unclean(r):
				return errNowhere
			default:
				s.text(f, v, c.pathValue(r, f.name))
			}
		case fromHeader:
			for _, line := range r.Header[f.name] {
				if !f.many {
					s.text(f, v, line)
					continue
				}
				for element := range elements(line) {
					s.text(f, v, element)
				}
			}
		}
	}
	if r.URL.RawQuery != "" {
		c.bindQuery(s, r.URL.RawQuery, v)
	}
	for _, f := range p.params {
		if s.present&f.bit != 0 {
			continue
		}
		for _, text := range f.fallback {
			f.set(f.of(v), text)
			s.present |= f.bit
		}
	}
	if s.bound = len(s.faults); s.broken {
		kind = bodyNone // members may be missing because reading stopped
	}
	c.validate(s, kind, v)
	if len(s.faults) == 0 && p.method {
		s.faultsOf(v.Addr().Interface().(validator).Validate())
	}
	if len(s.faults) > 0 {
		return s.invalid()
	}
	return nil
}

// elements yields the elements of a list on one header line (RFC 9110, section 5.6.1). The list may
// also be split over several lines. A comma in quotes does not separate elements.
func elements(line string) iter.Seq[string] {
	return func(yield func(string) bool) {
		quoted, from := false, 0
		for i := 0; i <= len(line); i++ {
			switch {
			case i == len(line) || line[i] == ',' && !quoted:
				if one := strings.Trim(line[from:i], " \t"); one != "" && !yield(one) {
					return
				}
				from = i + 1
			case line[i] == '"':
				quoted = !quoted
			case line[i] == '\\' && quoted:
				i = min(i+1, len(line)-1)
			}
		}
	}
}

// text sets f to text, the value of its parameter or form field.
func (s *scratch) text(f *field, v reflect.Value, text string) {
	if s.present&f.bit != 0 && !f.many {
		s.param(f, moreThanOnce)
		return
	}
	s.present |= f.bit
	if fault := f.set(f.of(v), text); fault != "" {
		s.param(f, fault)
	}
}

func (c *core) bindQuery(s *scratch, query string, v reflect.Value) {
	for n := 1; query != ""; n++ {
		if n > c.limits.Fields {
			s.fault(Fault{In: "query", Detail: "there are too many query parameters"})
			return
		}
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		if pair == "" {
			n--
			continue
		}
		name, value, wrong := unescapePair(pair)
		switch f := c.plan.query[name]; {
		case wrong != "":
			s.fault(Fault{In: "query", Detail: wrong})
		case f != nil:
			s.text(f, v, value)
		case !c.ignores(s, name):
			s.fault(Fault{In: "query", Parameter: short(name), Detail: "is not a parameter"})
		}
	}
}

// ignores reports whether an unknown parameter or form field with the given name may be ignored.
func (c *core) ignores(s *scratch, name string) bool {
	return s.lax && (c.refuse == nil || !c.refuse(name))
}

// Faults of a pair in a query or a form.
const (
	badEscape = "is not valid percent-encoding"
	// Some implementations treat a semicolon as a separator.
	semicolon = "has a semicolon: separate what it separates by &, and write %3B for one that is meant"
)

// unescapePair splits and decodes one name=value pair, and returns the fault of the pair, if any.
// It allocates only for escaped text; unescaped parts share the memory of pair.
func unescapePair(pair string) (name, value, wrong string) {
	equals, escaped := len(pair), false
	for i := range len(pair) {
		switch pair[i] {
		case ';': // refused, as by net/url
			return "", "", semicolon
		case '%', '+':
			escaped = true
		case '=':
			equals = min(equals, i)
		}
	}
	name, value = pair[:equals], pair[min(equals+1, len(pair)):]
	if !escaped {
		return name, value, ""
	}
	name, err := url.QueryUnescape(name)
	if err == nil {
		value, err = url.QueryUnescape(value)
	}
	if err != nil {
		wrong = badEscape
	}
	return name, value, wrong
}
