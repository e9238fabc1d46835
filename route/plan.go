package route

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/route/internal/syntax"
)

// source is the source of a request field.
type source uint8

const (
	fromBody   source = iota // a member, by its json, form or xml name
	fromPath                 // a wildcard of the pattern
	fromQuery                // a query parameter
	fromHeader               // a header field
	fromText                 // the whole text/plain body
	fromJSON                 // the whole JSON document
)

var sourceNames = [...]string{fromBody: "form", fromPath: "path", fromQuery: "query", fromHeader: "header"}

// plan describes how a request is bound to one type. It is compiled at start-up, by New, and by
// Group.Add for a prefixed pattern. It is read-only afterwards.
type plan struct {
	typ     reflect.Type
	fields  []*field // all
	params  []*field // fields from path, query and header
	query   map[string]*field
	form    map[string]*field
	forms   []*field // the fields of form, in order
	members *shape   // the body as an object: fields with json or xml names
	whole   *field   // body:"json"
	text    *field   // body:"text"
	accepts struct{ json, form, xml, text bool }

	foreign     []*field // not JSON members, but a Codec may set them by Go name
	checks      []*field // fields with values to validate
	ruledParams []*field // parameters that are required or have rules
	validates   bool     // the request type has a method Validate
	escapes     bool     // user code gets a pointer into the request
	optional    bool     // no body field is required
	shapes      *shapes
}

// body reports whether any field comes from the body.
func (p *plan) body() bool {
	return p.accepts.json || p.accepts.form || p.accepts.xml || p.accepts.text
}

// hasPath reports whether any field comes from the path.
func (p *plan) hasPath() bool {
	return slices.ContainsFunc(p.params, func(f *field) bool { return f.source == fromPath })
}

type validator interface{ Validate() error }

// compile makes the plan of t for a route with the given pattern. Its errors name fields.
func compile(t reflect.Type, pattern string, known knownTypes) (*plan, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("request type %s is no struct", t)
	}
	p := &plan{typ: t, query: map[string]*field{}, form: map[string]*field{}, members: &shape{typ: t, kind: kindObject}, shapes: newShapes(known, false)}
	errs := p.collect(t, nil)
	errs = append(errs, p.matchPattern(pattern))
	if p.whole != nil && len(p.members.byName) > 0 {
		errs = append(errs, fmt.Errorf("field %s is the whole JSON document, so no other field can be a member", p.whole.goName))
	}
	if len(p.fields) > 64 {
		errs = append(errs, errors.New("more than 64 fields"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("request type %s: %w", t, err)
	}
	p.shapes.settle()
	p.validates = reflect.PointerTo(t).Implements(reflect.TypeFor[validator]())
	p.escapes = p.validates && !t.Implements(reflect.TypeFor[validator]())
	p.optional = !slices.ContainsFunc(p.fields, (*field).needsBody)
	for i, f := range p.fields {
		f.bit = 1 << i
		p.escapes = p.escapes || f.shape.escapes
		if f.source == fromPath || f.source == fromQuery || f.source == fromHeader {
			p.params = append(p.params, f)
			if f.required || f.ruled() {
				p.ruledParams = append(p.ruledParams, f)
			}
		}
		if f.required || f.ruled() || f.shape.checked || f.shape.fragile {
			p.checks = append(p.checks, f)
		}
		if f.source != fromJSON && f.json == "" && p.whole == nil && p.accepts.json {
			p.foreign = append(p.foreign, f)
		}
	}
	return p, nil
}

// needsBody reports whether f, a field of a request, requires a value in the body.
func (f *field) needsBody() bool {
	switch f.source {
	case fromBody, fromText:
		return f.required
	case fromJSON:
		return f.required || slices.ContainsFunc(f.shape.bare().fields, func(member *field) bool { return member.required })
	}
	return false
}

// collect reads the fields of t. t is the request type, or is embedded in it at index.
func (p *plan) collect(t reflect.Type, index []int) (errs []error) {
	for i := range t.NumField() {
		sf := t.Field(i)
		at := append(slices.Clone(index), i)
		switch {
		case sf.Anonymous && sf.Type.Kind() == reflect.Struct && sf.Tag == "":
			errs = append(errs, p.collect(sf.Type, at)...)
			continue
		case sf.Anonymous && sf.Tag == "":
			errs = append(errs, fmt.Errorf("field %s: embed a struct by value", sf.Name))
			continue
		case !sf.IsExported() || sf.Type == xmlNameType || sf.Tag.Get("json") == "-" && len(tagsOf(sf)) == 1:
			continue
		}
		if err := p.field(sf, at); err != nil {
			errs = append(errs, fmt.Errorf("field %s: %w", sf.Name, err))
		}
	}
	return errs
}

var sourceTags = []string{"path", "query", "header", "body", "json", "form", "xml"}

func tagsOf(sf reflect.StructField) (tags []string) {
	for _, name := range sourceTags {
		if _, ok := sf.Tag.Lookup(name); ok {
			tags = append(tags, name)
		}
	}
	return tags
}

func (p *plan) field(sf reflect.StructField, index []int) error {
	tags := tagsOf(sf)
	if len(tags) > 1 && sf.Tag.Get("json") == "-" {
		tags = slices.DeleteFunc(tags, func(s string) bool { return s == "json" })
	}
	switch {
	case len(tags) == 0:
		return errors.New(`says nowhere where it comes from: give it a path, query, header, body, json, form or xml tag, or json:"-"`)
	case len(tags) > 1 && slices.ContainsFunc(tags, func(s string) bool { return slices.Contains(sourceTags[:4], s) }):
		return fmt.Errorf("comes from more than one source: %s", strings.Join(tags, ", "))
	}
	f, err := p.shapes.member(sf, index)
	if err != nil {
		return err
	}
	name := sf.Tag.Get(tags[0])
	switch tags[0] {
	case "path", "query", "header":
		if name == "" {
			return fmt.Errorf("tag %s has no name", tags[0])
		}
		f.json, f.xml, f.name = "", "", name
		return p.param(f, tags[0])
	case "body":
		return p.document(f, name)
	}
	return p.member(f, sf, tags)
}

// param adds a field that is a parameter.
func (p *plan) param(f *field, tag string) (err error) {
	switch tag {
	case "path":
		f.source, f.required = fromPath, true
	case "query":
		if p.query[f.name] != nil {
			return fmt.Errorf("two fields come from query parameter %s", f.name)
		}
		f.source, p.query[f.name] = fromQuery, f
	case "header":
		f.source, f.name = fromHeader, canonical(f.name)
		if err := headerName(f.name); err != nil {
			return err
		}
	}
	if f.set, f.many, err = setterOf(f.shape); err != nil {
		return err
	}
	p.fields = append(p.fields, f)
	switch {
	case f.source == fromPath && f.many:
		return errors.New("a path has one value")
	case f.fallback == nil:
		return nil
	case f.source == fromPath:
		return errNoDefault
	case f.required:
		return errors.New("has a default, and is required")
	}
	v := reflect.New(f.shape.typ).Elem()
	for _, text := range f.fallback {
		if detail := f.set(v, text); detail != "" {
			return fmt.Errorf("default %q: %s", text, detail)
		}
	}
	for detail := range f.violations(f.shape.deref(v)) {
		return fmt.Errorf("default %q: %s", strings.Join(f.fallback, ","), detail)
	}
	return nil
}

var errNoDefault = errors.New("a default is for a query or header parameter")

// headerName reports a header name that is invalid, or that net/http keeps outside r.Header.
func headerName(name string) error {
	switch name {
	case "Host", "Trailer", "Transfer-Encoding":
		return fmt.Errorf("net/http keeps header %s elsewhere", name)
	}
	if !syntax.IsToken(name) {
		return fmt.Errorf("%q is no name of a header", name)
	}
	return nil
}

// document adds a field that is the whole body.
func (p *plan) document(f *field, kind string) (err error) {
	f.json, f.xml = "", ""
	switch {
	case f.fallback != nil:
		return errNoDefault
	case kind == "json" && p.whole == nil:
		f.source, p.whole, p.accepts.json = fromJSON, f, true
	case kind == "text" && p.text == nil:
		f.source, p.text, p.accepts.text = fromText, f, true
		f.set, _, err = setterOf(f.shape)
	default:
		return fmt.Errorf("body:%q: there are body:\"json\" and body:\"text\", once each", kind)
	}
	p.fields = append(p.fields, f)
	return err
}

// member adds a field that is a member of the body. Each of the tags gives its name in one kind of
// body.
func (p *plan) member(f *field, sf reflect.StructField, tags []string) (err error) {
	if f.fallback != nil {
		return errNoDefault
	}
	if !slices.Contains(tags, "json") {
		f.json = ""
	} else if f.json == "" {
		f.json = f.goName
	}
	if !slices.Contains(tags, "xml") {
		f.xml = ""
	}
	f.form, _, _ = strings.Cut(sf.Tag.Get("form"), ",")
	p.accepts.json = p.accepts.json || f.json != ""
	p.accepts.xml = p.accepts.xml || f.xml != ""
	if f.form != "" {
		p.accepts.form = true
		if p.form[f.form] != nil {
			return fmt.Errorf("two fields are called %s in a form", f.form)
		}
		p.form[f.form] = f
		p.forms = append(p.forms, f)
		if !isUpload(f.shape) {
			if f.set, f.many, err = setterOf(f.shape); err != nil {
				return err
			}
		}
	} else if isUpload(f.shape) {
		return errors.New("an Upload comes from a form")
	}
	p.fields = append(p.fields, f)
	if f.json != "" || f.xml != "" {
		return p.members.add(f)
	}
	return nil
}

func isUpload(s *shape) bool {
	return s.bare().upload || s.kind == kindList && s.elem.upload
}

// matchPattern compares the wildcards of pattern with the path fields.
func (p *plan) matchPattern(pattern string) error {
	names := map[string]bool{}
	for rest := pattern; ; {
		_, after, found := strings.Cut(rest, "{")
		if !found {
			break
		}
		var name string
		name, rest, _ = strings.Cut(after, "}")
		if name = strings.TrimSuffix(name, "..."); name != "$" {
			names[name] = false
		}
	}
	for _, f := range p.fields {
		if f.source != fromPath {
			continue
		}
		if _, ok := names[f.name]; !ok {
			return fmt.Errorf("field %s: pattern %s has no {%s}", f.goName, pattern, f.name)
		}
		names[f.name] = true
	}
	for name, used := range names {
		if !used {
			return fmt.Errorf("no field comes from {%s} of pattern %s", name, pattern)
		}
	}
	return nil
}
