// Package shape compiles Go types: what a type is in a request or a response, which rules its
// fields have, and where the fields of a request come from.
package shape

import (
	"encoding"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/spillway-go/spillway/route/internal/stdjson"
	"github.com/spillway-go/spillway/route/internal/syntax"
)

// Kind is the form of a type in a request or response.
type Kind uint8

const (
	Any      Kind = iota // any JSON value
	Custom               // decoded by UnmarshalJSON or UnmarshalText, or a special case
	Object               // a struct
	Map                  // with string keys
	List                 // a slice
	Pointer              // null or the value pointed to
	Optional             // absent or its value
	String
	Bool
	Int
	Uint
	Float
)

// Shape describes a type: its written form, its members and their rules. The JSON decoder, the
// validator and the OpenAPI document use the same shapes. A recursive type has a recursive shape.
type Shape struct {
	Type      reflect.Type
	Kind      Kind
	Elem      *Shape            // of a list, map, pointer or optional
	Fields    []*Field          // of an object, with those of embedded structs
	ByName    map[string]*Field // by JSON name
	Set       setter            // sets a value from text; nil if text is not possible
	Bytes     bool              // a slice of bytes: base64 in JSON, the bytes themselves as text
	timeIndex int               // of a custom struct, 1 + the index of its embedded time.Time
	Must      string            // text of the fault for an invalid value
	Checked   bool              // the value or a part of it has rules
	Upload    bool              // a file of a form
	Escapes   bool              // user code gets a pointer into the value
}

// Field is a member of an object, or a parameter.
type Field struct {
	goName          string
	index           []int
	Shape           *Shape
	Source          Source
	Name            string // of a parameter
	JSON, Form, XML string // names in a body; empty means not in a body of that kind
	Attr            bool   // the XML name is the name of an attribute
	Bit             uint64 // one bit: among the fields of the request, or among the members of an object
	Required        bool
	Omits           bool // may be absent from a response
	OmitsZero       bool // may be absent because of omitzero
	Rules           []Rule
	Each            []Rule   // rules for the elements of a list
	MaxElems        int      // maximum number of elements of a list or map
	Tags            ruleTags // the rules, for the OpenAPI document
	Set             setter   // sets the value from text
	Many            bool     // the field accepts more than one text
	Fallback        []string // the default: one text, or one for each element
	Doc             string
}

// Element is the field for a list element or map value, which has no field of its own.
var Element = &Field{MaxElems: math.MaxInt}

// Ruled reports whether the field has rules.
func (f *Field) Ruled() bool { return len(f.Rules) > 0 || len(f.Each) > 0 }

// Of returns the field's value in v, a struct.
func (f *Field) Of(v reflect.Value) reflect.Value {
	if len(f.index) == 1 {
		return v.Field(f.index[0])
	}
	return v.FieldByIndex(f.index)
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	numberType   = reflect.TypeFor[json.Number]()
	durationType = reflect.TypeFor[time.Duration]()
	rawType      = reflect.TypeFor[json.RawMessage]()
	textType     = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonType     = reflect.TypeFor[json.Unmarshaler]()
	xmlNameType  = reflect.TypeFor[xml.Name]()
)

// Types are the types that have a meaning of their own in requests and responses.
type Types struct {
	Upload   reflect.Type            // a file of a form: a struct of Name, ContentType and Content
	Optional func(reflect.Type) bool // a struct of a value and whether the value is set
}

// shapes makes one shape for each type.
type shapes struct {
	seen     map[reflect.Type]*Shape
	known    Types
	response bool // for response types: a type unknown to requests is no error
}

func newShapes(known Types, response bool) *shapes {
	return &shapes{map[reflect.Type]*Shape{}, known, response}
}

// OfResponse returns the shape of t, the type of an encoded response. hasParts reports whether a
// type that occurs in t is one whose parts are known.
func OfResponse(t reflect.Type, known Types) (s *Shape, hasParts func(reflect.Type) bool) {
	m := newShapes(known, true)
	s, _ = m.of(t)
	m.settle()
	return s, m.hasParts
}

// hasParts reports whether t is a type whose parts are known.
func (m *shapes) hasParts(t reflect.Type) bool {
	s := m.seen[t]
	return s != nil && (s.Elem != nil || s.Fields != nil || s.Bytes)
}

// of returns t's shape.
func (m *shapes) of(t reflect.Type) (*Shape, error) {
	if s := m.seen[t]; s != nil {
		return s, nil
	}
	s := &Shape{Type: t}
	m.seen[t] = s
	err := m.fill(s)
	if m.response && err != nil {
		s.Kind, s.Escapes, err = Any, true, nil // the contents of the type are unknown
	}
	return s, err
}

// bytesIn reports whether encoding/json writes t, a slice, as base64.
func bytesIn(t reflect.Type) bool {
	elem := reflect.PointerTo(t.Elem())
	return t.Elem().Kind() == reflect.Uint8 && !elem.Implements(jsonType) && !elem.Implements(textType) && !stdjson.Marshals(elem)
}

func (m *shapes) fill(s *Shape) (err error) {
	t := s.Type
	pointer := reflect.PointerTo(t)
	switch {
	case t == timeType:
		s.Kind, s.Must = Custom, "must be a time such as 2006-01-02T15:04:05Z"
		return nil
	case t == numberType:
		s.Kind, s.Must = Custom, "must be a number"
		return nil
	case t == rawType:
		s.Kind = Any
		return nil
	case t == m.known.Upload:
		s.Kind, s.Must, s.Upload = Custom, "must be a file", true
		return nil
	case m.known.Optional(t):
		s.Kind = Optional
		s.Elem, err = m.of(t.Field(0).Type)
		return err
	case t.Kind() == reflect.Pointer:
		s.Kind = Pointer
		s.Elem, err = m.of(t.Elem())
		return err
	case m.response && stdjson.Marshals(pointer):
		s.Kind, s.Escapes = Custom, true
		return nil
	case !m.response && stdjson.Unmarshals(pointer):
		s.Kind, s.Must, s.Escapes = Custom, "is not valid", true
		s.timeIndex = timeIn(t)
		return nil
	}
	switch t.Kind() {
	case reflect.String:
		s.Kind = String
	case reflect.Bool:
		s.Kind = Bool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		s.Kind = Int
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		s.Kind = Uint
	case reflect.Float32, reflect.Float64:
		s.Kind, s.Must = Float, "must be a number"
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return fmt.Errorf("nothing can be decoded into interface %s", t)
		}
		s.Kind = Any
	case reflect.Slice:
		if bytesIn(t) {
			s.Kind, s.Bytes, s.Must = Custom, true, "must be a base64 string"
			return nil
		}
		s.Kind = List
		s.Elem, err = m.of(t.Elem())
	case reflect.Map:
		if t.Key().Kind() != reflect.String || reflect.PointerTo(t.Key()).Implements(textType) {
			return fmt.Errorf("the keys of %s are no strings", t)
		}
		s.Kind = Map
		s.Elem, err = m.of(t.Elem())
	case reflect.Struct:
		s.Kind = Object
		err = m.members(s, t, nil)
		if len(s.Fields) > 64 && !m.response {
			return fmt.Errorf("%s has more than 64 fields", t)
		}
	default:
		return fmt.Errorf("type %s is not supported", t)
	}
	return err
}

// members adds the fields of t. t is the type of s, or is embedded in that type at index.
func (m *shapes) members(s *Shape, t reflect.Type, index []int) error {
	for i := range t.NumField() {
		sf := t.Field(i)
		at := append(append([]int(nil), index...), i)
		tag, tagged := sf.Tag.Lookup("json")
		switch {
		case sf.Anonymous && !tagged && sf.Type.Kind() == reflect.Struct:
			if err := m.members(s, sf.Type, at); err != nil {
				return err
			}
			continue
		case sf.Anonymous && !tagged:
			return fmt.Errorf("field %s: embed a struct by value", sf.Name)
		case !sf.IsExported() || tag == "-" || sf.Type == xmlNameType:
			continue
		}
		f, err := m.member(sf, at)
		if err != nil {
			return fmt.Errorf("field %s: %w", sf.Name, err)
		}
		if f.Fallback != nil && !m.response {
			return fmt.Errorf("field %s: %w", sf.Name, errNoDefault)
		}
		if f.JSON == "" {
			f.JSON = sf.Name
		}
		if err := s.add(f); err != nil {
			return err
		}
	}
	return nil
}

// add makes f a member of the object s.
func (s *Shape) add(f *Field) error {
	if s.ByName == nil {
		s.ByName = map[string]*Field{}
	}
	if f.JSON != "" {
		if other := s.ByName[f.JSON]; other != nil {
			return fmt.Errorf("fields %s and %s are both called %s", other.goName, f.goName, f.JSON)
		}
		s.ByName[f.JSON] = f
	}
	f.Bit = 1 << (len(s.Fields) % 64)
	s.Fields = append(s.Fields, f)
	return nil
}

// member reads the tags of sf that do not depend on the field's source.
func (m *shapes) member(sf reflect.StructField, index []int) (*Field, error) {
	f := &Field{goName: sf.Name, index: index, Doc: sf.Tag.Get("doc"), MaxElems: math.MaxInt}
	name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
	f.JSON = name
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "":
		case "omitempty":
			f.Omits = true
		case "omitzero":
			f.Omits, f.OmitsZero = true, true
		case "string":
			if !m.response {
				return nil, fmt.Errorf("json option %q is not supported in a request", option)
			}
			f.Shape = &Shape{Type: reflect.TypeFor[string](), Kind: String}
		default:
			return nil, fmt.Errorf("json option %q is not supported", option)
		}
	}
	f.XML = sf.Name
	if tag, ok := sf.Tag.Lookup("xml"); ok {
		name, options, _ := strings.Cut(tag, ",")
		f.Attr = strings.HasPrefix(options, "attr")
		switch {
		case name == "-":
			f.XML = ""
		case strings.ContainsAny(name, "> ") || options != "" && options != "attr" && options != "omitempty" && options != "attr,omitempty":
			return nil, fmt.Errorf("xml tag %q: only a name and attr are supported", tag)
		case name != "":
			f.XML = name
		}
	}
	if f.Shape != nil {
		return f, nil
	}
	var err error
	if f.Shape, err = m.of(sf.Type); err != nil {
		return nil, err
	}
	return f, f.addRules(sf.Tag)
}

// settle makes the setters. It also computes Checked and Escapes for shapes that may
// refer to each other in cycles.
func (m *shapes) settle() {
	for _, s := range m.seen {
		s.Set, _, _ = setterOf(s)
	}
	for changed := true; changed; {
		changed = false
		for _, s := range m.seen {
			checked, escapes := s.Checked, s.Escapes
			if s.Elem != nil {
				checked, escapes = checked || s.Elem.Checked, escapes || s.Elem.Escapes
			}
			for _, f := range s.Fields {
				checked = checked || f.Required || f.Ruled() || f.Shape.Checked
				escapes = escapes || f.Shape.Escapes
			}
			if checked != s.Checked || escapes != s.Escapes {
				s.Checked, s.Escapes, changed = checked, escapes, true
			}
		}
	}
}

// Deref returns the value behind pointers and Optionals, none of which may be nil.
func (s *Shape) Deref(v reflect.Value) reflect.Value {
	for ; s.Kind == Pointer || s.Kind == Optional; s = s.Elem {
		if s.Kind == Optional {
			v = v.Field(0)
		} else {
			v = v.Elem()
		}
	}
	return v
}

// Bare strips pointers and Optional.
func (s *Shape) Bare() *Shape {
	for s.Kind == Pointer || s.Kind == Optional {
		s = s.Elem
	}
	return s
}

// timeIn returns 1 + the index of the time.Time that t embeds, or 0. The methods of that
// time.Time may be the methods that decode t.
func timeIn(t reflect.Type) int {
	if t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			if f := t.Field(i); f.Anonymous && f.Type == timeType {
				return i + 1
			}
		}
	}
	return 0
}

// Encodable reports whether JSON can express v, a custom value.
func (s *Shape) Encodable(v reflect.Value) bool {
	switch {
	case s.Type == timeType:
		return syntax.FitsRFC3339(v.Interface().(time.Time))
	case s.Type == numberType:
		return v.String() == "" || syntax.IsNumber(v.String()) // encoding/json writes 0 for an empty json.Number
	case s.timeIndex > 0:
		return syntax.FitsRFC3339(v.Field(s.timeIndex - 1).Interface().(time.Time))
	}
	return true
}
