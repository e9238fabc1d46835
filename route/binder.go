package route

import (
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"github.com/spillway-go/spillway/route/internal/shape"
	"github.com/spillway-go/spillway/route/internal/syntax"
)

// binder binds the requests of one route to values of its request type. It notes the faults in a
// scratch.
type binder struct {
	plan   *shape.Plan
	limits wireLimits
	refuse func(name string) bool // refuses unknown names that would be ignored; nil: none
}

// wireLimits bound the cost of a request.
type wireLimits struct {
	File   int64 // bytes of one uploaded file
	Memory int64 // bytes of the lists, maps and pointers that JSON and XML are decoded into
	Depth  int   // nesting of JSON and XML
	Fields int   // query parameters, and separately fields of a form
	Parts  int   // parts of a multipart form
}

// bodyKind is the format of a body.
type bodyKind uint8

const (
	bodyNone bodyKind = iota
	bodyJSON
	bodyForm
	bodyMultipart
	bodyXML
	bodyText
	bodyCodec
)

// text binds a text/plain body.
func (b *binder) text(s *scratch, v reflect.Value) { s.text(b.plan.Text, v, string(s.body)) }

// parameters binds the parameters, after the body. A codec may have set a field that is not a member
// of the body, by its Go name. Such a field is cleared, or overwritten from its real source.
func (b *binder) parameters(s *scratch, kind bodyKind, path interface{ PathValue(name string) string }, query string, header http.Header, v reflect.Value) {
	if kind == bodyCodec {
		for _, f := range b.plan.Foreign {
			f.Of(v).SetZero()
		}
	}
	for _, f := range b.plan.Params {
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
	for _, f := range b.plan.Params {
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
func (s *scratch) text(f *shape.Field, v reflect.Value, text string) {
	if s.present&f.Bit != 0 && !f.Many {
		s.addParam(f, moreThanOnce)
		return
	}
	s.present |= f.Bit
	if fault := f.Set(f.Of(v), text); fault != "" {
		s.addParam(f, fault)
	}
}

func (b *binder) query(s *scratch, query string, v reflect.Value) {
	for n := 1; query != ""; n++ {
		if n > b.limits.Fields {
			s.add(wireFault{In: "query", Detail: "there are too many query parameters"})
			return
		}
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		if pair == "" {
			n--
			continue
		}
		name, value, wrong := unescapePair(pair)
		switch f := b.plan.Query[name]; {
		case wrong != "":
			s.add(wireFault{In: "query", Detail: wrong})
		case f != nil:
			s.text(f, v, value)
		case !b.ignores(s, name):
			s.add(wireFault{In: "query", Parameter: short(name), Detail: "is not a parameter"})
		}
	}
}

// ignores reports whether an unknown parameter or form field with the given name may be ignored.
func (b *binder) ignores(s *scratch, name string) bool {
	return s.allowUnknown && (b.refuse == nil || !b.refuse(name))
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
