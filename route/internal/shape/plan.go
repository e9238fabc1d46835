package shape

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/route/internal/syntax"
)

// Source is the source of a request field.
type Source uint8

const (
	FromBody   Source = iota // a member, by its json, form or xml name
	FromPath                 // a wildcard of the pattern
	FromQuery                // a query parameter
	FromHeader               // a header field
	FromText                 // the whole text/plain body
	FromJSON                 // the whole JSON document
)

// String returns the name of s in a fault, and in the document.
func (s Source) String() string {
	return [...]string{FromBody: "form", FromPath: "path", FromQuery: "query", FromHeader: "header", FromText: "", FromJSON: ""}[s]
}

// Plan describes how a request is bound to one type. A plan is compiled at start-up, for
// one pattern, and is read-only afterwards.
type Plan struct {
	Type    reflect.Type
	Fields  []*Field // all
	Params  []*Field // fields from path, query and header
	Query   map[string]*Field
	Form    map[string]*Field
	Forms   []*Field // the fields of form, in order
	Members *Shape   // the body as an object: fields with json or xml names
	Whole   *Field   // body:"json"
	Text    *Field   // body:"text"
	Accepts struct{ JSON, Form, XML, Text bool }

	Checks      []*Field // fields with values to validate
	RuledParams []*Field // parameters that are required or have rules
	Validates   bool     // the request type has a method Validate
	Escapes     bool     // user code gets a pointer into the request
	Optional    bool     // no body field is required
	shapes      *shapes
}

// Body reports whether any field comes from the body.
func (p *Plan) Body() bool {
	return p.Accepts.JSON || p.Accepts.Form || p.Accepts.XML || p.Accepts.Text
}

// HasPath reports whether any field comes from the path.
func (p *Plan) HasPath() bool {
	return slices.ContainsFunc(p.Params, func(f *Field) bool { return f.Source == FromPath })
}

type validator interface{ Validate() error }

// Compile makes the plan of t for a route with the given pattern. Its errors name fields.
func Compile(t reflect.Type, pattern string, known Types) (*Plan, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("request type %s is no struct", t)
	}
	p := &Plan{Type: t, Query: map[string]*Field{}, Form: map[string]*Field{}, Members: &Shape{Type: t, Kind: Object}, shapes: newShapes(known, false)}
	errs := p.collect(t, nil)
	errs = append(errs, p.matchPattern(pattern))
	if p.Whole != nil && len(p.Members.ByName) > 0 {
		errs = append(errs, fmt.Errorf("field %s is the whole JSON document, so no other field can be a member", p.Whole.goName))
	}
	if len(p.Fields) > 64 {
		errs = append(errs, errors.New("more than 64 fields"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("request type %s: %w", t, err)
	}
	p.shapes.settle()
	p.Validates = reflect.PointerTo(t).Implements(reflect.TypeFor[validator]())
	p.Escapes = p.Validates && !t.Implements(reflect.TypeFor[validator]())
	p.Optional = !slices.ContainsFunc(p.Fields, (*Field).needsBody)
	for i, f := range p.Fields {
		f.Bit = 1 << i
		p.Escapes = p.Escapes || f.Shape.Escapes
		if f.Source == FromPath || f.Source == FromQuery || f.Source == FromHeader {
			p.Params = append(p.Params, f)
			if f.Required || f.Ruled() {
				p.RuledParams = append(p.RuledParams, f)
			}
		}
		if f.Required || f.Ruled() || f.Shape.Checked {
			p.Checks = append(p.Checks, f)
		}
	}
	return p, nil
}

// needsBody reports whether f, a field of a request, requires a value in the body.
func (f *Field) needsBody() bool {
	switch f.Source {
	case FromBody, FromText:
		return f.Required
	case FromJSON:
		return f.Required || slices.ContainsFunc(f.Shape.Bare().Fields, func(member *Field) bool { return member.Required })
	}
	return false
}

// collect reads the fields of t. t is the request type, or is embedded in it at index.
func (p *Plan) collect(t reflect.Type, index []int) (errs []error) {
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

func (p *Plan) field(sf reflect.StructField, index []int) error {
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
		f.JSON, f.XML, f.Name = "", "", name
		return p.param(f, tags[0])
	case "body":
		return p.document(f, name)
	}
	return p.member(f, sf, tags)
}

// param adds a field that is a parameter.
func (p *Plan) param(f *Field, tag string) (err error) {
	switch tag {
	case "path":
		f.Source, f.Required = FromPath, true
	case "query":
		if p.Query[f.Name] != nil {
			return fmt.Errorf("two fields come from query parameter %s", f.Name)
		}
		f.Source, p.Query[f.Name] = FromQuery, f
	case "header":
		f.Source, f.Name = FromHeader, canonical(f.Name)
		if err := headerName(f.Name); err != nil {
			return err
		}
	}
	if f.Set, f.Many, err = setterOf(f.Shape); err != nil {
		return err
	}
	p.Fields = append(p.Fields, f)
	switch {
	case f.Source == FromPath && f.Many:
		return errors.New("a path has one value")
	case f.Fallback == nil:
		return nil
	case f.Source == FromPath:
		return errNoDefault
	case f.Required:
		return errors.New("has a default, and is required")
	}
	v := reflect.New(f.Shape.Type).Elem()
	for _, text := range f.Fallback {
		if detail := f.Set(v, text); detail != "" {
			return fmt.Errorf("default %q: %s", text, detail)
		}
	}
	for detail := range f.Violations(f.Shape.Deref(v)) {
		return fmt.Errorf("default %q: %s", strings.Join(f.Fallback, ","), detail)
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
func (p *Plan) document(f *Field, kind string) (err error) {
	f.JSON, f.XML = "", ""
	switch {
	case f.Fallback != nil:
		return errNoDefault
	case kind == "json" && p.Whole == nil:
		f.Source, p.Whole, p.Accepts.JSON = FromJSON, f, true
	case kind == "text" && p.Text == nil:
		f.Source, p.Text, p.Accepts.Text = FromText, f, true
		f.Set, _, err = setterOf(f.Shape)
	default:
		return fmt.Errorf("body:%q: there are body:\"json\" and body:\"text\", once each", kind)
	}
	p.Fields = append(p.Fields, f)
	return err
}

// member adds a field that is a member of the body. Each of the tags gives its name in one kind of
// body.
func (p *Plan) member(f *Field, sf reflect.StructField, tags []string) (err error) {
	if f.Fallback != nil {
		return errNoDefault
	}
	if !slices.Contains(tags, "json") {
		f.JSON = ""
	} else if f.JSON == "" {
		f.JSON = f.goName
	}
	if !slices.Contains(tags, "xml") {
		f.XML = ""
	}
	f.Form, _, _ = strings.Cut(sf.Tag.Get("form"), ",")
	p.Accepts.JSON = p.Accepts.JSON || f.JSON != ""
	p.Accepts.XML = p.Accepts.XML || f.XML != ""
	if f.Form != "" {
		p.Accepts.Form = true
		if p.Form[f.Form] != nil {
			return fmt.Errorf("two fields are called %s in a form", f.Form)
		}
		p.Form[f.Form] = f
		p.Forms = append(p.Forms, f)
		if !f.Shape.IsUpload() {
			if f.Set, f.Many, err = setterOf(f.Shape); err != nil {
				return err
			}
		}
	} else if f.Shape.IsUpload() {
		return errors.New("an Upload comes from a form")
	}
	p.Fields = append(p.Fields, f)
	if f.JSON != "" || f.XML != "" {
		return p.Members.add(f)
	}
	return nil
}

// IsUpload reports whether s is an upload, or a list of uploads.
func (s *Shape) IsUpload() bool {
	return s.Bare().Upload || s.Kind == List && s.Elem.Upload
}

// matchPattern compares the wildcards of pattern with the path fields.
func (p *Plan) matchPattern(pattern string) error {
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
	for _, f := range p.Fields {
		if f.Source != FromPath {
			continue
		}
		if _, ok := names[f.Name]; !ok {
			return fmt.Errorf("field %s: pattern %s has no {%s}", f.goName, pattern, f.Name)
		}
		names[f.Name] = true
	}
	for name, used := range names {
		if !used {
			return fmt.Errorf("no field comes from {%s} of pattern %s", name, pattern)
		}
	}
	return nil
}
