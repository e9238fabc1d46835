// Package wire binds requests: from their body and parameters to a value of the request type, with
// all faults and where they are.
package wire

import (
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"github.com/spillway-go/spillway/route/internal/shape"
	"github.com/spillway-go/spillway/route/internal/syntax"
)

// Binder binds the requests of one route to values of its request type. It notes the faults in a
// Scratch.
type Binder struct {
	Plan   *shape.Plan
	Limits Limits
	// Ignores must all return true for an unknown name that is ignored.
	Ignores []func(r *http.Request, name string) bool
}

// Limits bound the cost of a request.
type Limits struct {
	File   int64 // bytes of one uploaded file
	Memory int64 // bytes of the lists, maps and pointers that JSON and XML are decoded into
	Depth  int   // nesting of JSON and XML
	Fields int   // query parameters, and separately fields of a form
	Parts  int   // parts of a multipart form
}

// Kind is the format of a body.
type Kind uint8

const (
	None Kind = iota
	JSON
	Form
	Multipart
	XML
	Text
)

// Text binds a text/plain body.
func (b *Binder) Text(s *Scratch, v reflect.Value) { s.text(b.Plan.Text, v, string(s.Body)) }

// Parameters binds the parameters, after the body.
func (b *Binder) Parameters(s *Scratch, path interface{ PathValue(name string) string }, query string, header http.Header, v reflect.Value) {
	for _, f := range b.Plan.Params {
		switch f.Source {
		case shape.FromPath:
			s.text(f, v, path.PathValue(f.Name))
		case shape.FromHeader:
			for _, line := range header[f.Name] {
				if !f.Many {
					s.text(f, v, line)
					continue
				}
				for element := range syntax.ListElements(line) {
					s.text(f, v, element)
				}
			}
		}
	}
	if query != "" {
		b.query(s, query, v)
	}
	for _, f := range b.Plan.Params {
		if s.present&f.Bit != 0 {
			continue
		}
		for _, text := range f.Fallback {
			f.Set(f.Of(v), text)
			s.present |= f.Bit
		}
	}
}

// text sets f to text, the value of its parameter or form field.
func (s *Scratch) text(f *shape.Field, v reflect.Value, text string) {
	if s.present&f.Bit != 0 && !f.Many {
		s.addParam(f, MoreThanOnce)
		return
	}
	s.present |= f.Bit
	if fault := f.Set(f.Of(v), text); fault != "" {
		s.addParam(f, fault)
	}
}

func (b *Binder) query(s *Scratch, query string, v reflect.Value) {
	for n := 1; query != ""; n++ {
		if n > b.Limits.Fields {
			s.Add(Fault{In: "query", Detail: "there are too many query parameters"})
			return
		}
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		if pair == "" {
			n--
			continue
		}
		name, value, wrong := unescapePair(pair)
		switch f := b.Plan.Query[name]; {
		case wrong != "":
			s.Add(Fault{In: "query", Detail: wrong})
		case f != nil:
			s.text(f, v, value)
		case !b.ignores(s, name):
			s.Add(Fault{In: "query", Parameter: short(name), Detail: "is not a parameter"})
		}
	}
}

// ignores reports whether an unknown parameter, field or member with the given name may be ignored.
func (b *Binder) ignores(s *Scratch, name string) bool {
	if !s.AllowUnknown {
		return false
	}
	for _, ignored := range b.Ignores {
		if !ignored(s.Request, name) {
			return false
		}
	}
	return true
}

// Faults of a pair in a query or a form.
const (
	badEscape = "is not valid percent-encoding"
	// Some implementations treat a semicolon as a separator.
	Semicolon = "has a semicolon: separate what it separates by &, and write %3B for one that is meant"
)

// unescapePair splits and decodes one name=value pair, and returns the fault of the pair, if any.
// It allocates only for escaped text; unescaped parts share the memory of pair.
func unescapePair(pair string) (name, value, wrong string) {
	equals, escaped := len(pair), false
	for i := range len(pair) {
		switch pair[i] {
		case ';': // refused, as by net/url
			return "", "", Semicolon
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
