package route

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

// kind is the form of a type in a request or response.
type kind uint8

const (
	kindAny      kind = iota // any JSON value
	kindCustom               // decoded by UnmarshalJSON or UnmarshalText, or a special case
	kindObject               // a struct
	kindMap                  // with string keys
	kindList                 // a slice
	kindPointer              // null or the value pointed to
	kindOptional             // absent or its value
	kindString
	kindBool
	kindInt
	kindUint
	kindFloat
)

// shape describes a type: its written form, its members and their rules. The JSON decoder, the
// validator and the OpenAPI document use the same shapes. A recursive type has a recursive shape.
type shape struct {
	typ       reflect.Type
	kind      kind
	elem      *shape            // of a list, map, pointer or optional
	fields    []*field          // of an object, with those of embedded structs
	byName    map[string]*field // by JSON name
	set       setter            // sets a value from text; nil if text is not possible
	bytes     bool              // a slice of bytes: base64 in JSON, the bytes themselves as text
	timeIndex int               // of a custom struct, 1 + the index of its embedded time.Time
	must      string            // text of the fault for an invalid value
	checked   bool              // the value or a part of it has rules
	upload    bool              // a file of a form
	fragile   bool              // a Codec may decode a value that JSON cannot express
	escapes   bool              // user code gets a pointer into the value
}

// field is a member of an object, or a parameter.
type field struct {
	goName          string
	index           []int
	shape           *shape
	source          source
	name            string // of a parameter
	json, form, xml string // names in a body; empty means not in a body of that kind
	attr            bool   // the XML name is the name of an attribute
	bit             uint64 // in scratch.present, or among the members of an object
	required        bool
	omits           bool // may be absent from a response
	omitsZero       bool // may be absent because of omitzero
	rules           []rule
	each            []rule   // rules for the elements of a list
	maxElems        int      // maximum number of elements of a list or map
	tags            ruleTags // the rules, for the OpenAPI document
	set             setter   // sets the value from text
	many            bool     // the field accepts more than one text
	fallback        []string // the default: one text, or one for each element
	doc             string
}

// element is the field for a list element or map value, which has no field of its own.
var element = &field{maxElems: math.MaxInt}

// ruled reports whether the field has rules.
func (f *field) ruled() bool { return len(f.rules) > 0 || len(f.each) > 0 }

// of returns the field's value in v, a struct.
func (f *field) of(v reflect.Value) reflect.Value {
	if len(f.index) == 1 {
		return v.Field(f.index[0])
	}
	return v.FieldByIndex(f.index)
}

var (
	timeType        = reflect.TypeFor[time.Time]()
	numberType      = reflect.TypeFor[json.Number]()
	durationType    = reflect.TypeFor[time.Duration]()
	rawType         = reflect.TypeFor[json.RawMessage]()
	textType        = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonType        = reflect.TypeFor[json.Unmarshaler]()
	marshalType     = reflect.TypeFor[json.Marshaler]()
	marshalTextType = reflect.TypeFor[encoding.TextMarshaler]()
	xmlNameType     = reflect.TypeFor[xml.Name]()
)

// knownTypes are the types that have a meaning of their own in requests and responses.
type knownTypes struct {
	upload   reflect.Type            // a file of a form
	optional func(reflect.Type) bool // a struct of a value and whether the value is set
}

// shapes makes one shape for each type.
type shapes struct {
	seen  map[reflect.Type]*shape
	known knownTypes
	reply bool // for response types: a type unknown to requests is no error
}

func newShapes(known knownTypes, reply bool) *shapes {
	return &shapes{map[reflect.Type]*shape{}, known, reply}
}

// responseShape returns the shape of t, the type of an encoded response, and the shapes of its
// parts.
func responseShape(t reflect.Type, known knownTypes) (*shape, *shapes) {
	m := newShapes(known, true)
	s, _ := m.of(t)
	m.settle()
	return s, m
}

// hasParts reports whether t is a type whose parts are known.
func (m *shapes) hasParts(t reflect.Type) bool {
	s := m.seen[t]
	return s != nil && (s.elem != nil || s.fields != nil || s.bytes)
}

// of returns t's shape.
func (m *shapes) of(t reflect.Type) (*shape, error) {
	if s := m.seen[t]; s != nil {
		return s, nil
	}
	s := &shape{typ: t}
	m.seen[t] = s
	err := m.fill(s)
	if m.reply && err != nil {
		s.kind, s.escapes, err = kindAny, true, nil // the contents of the type are unknown
	}
	return s, err
}

// marshals reports whether the methods of a type write its JSON. pointer is the type of a pointer
// to the type.
func marshals(pointer reflect.Type) bool {
	return pointer.Implements(marshalType) || pointer.Implements(marshalTextType) || stdjson.WritesItself(pointer)
}

// bytesIn reports whether encoding/json writes t, a slice, as base64.
func bytesIn(t reflect.Type) bool {
	elem := reflect.PointerTo(t.Elem())
	return t.Elem().Kind() == reflect.Uint8 && !elem.Implements(jsonType) && !elem.Implements(textType) && !marshals(elem)
}

func (m *shapes) fill(s *shape) (err error) {
	t := s.typ
	pointer := reflect.PointerTo(t)
	switch {
	case t == timeType:
		s.kind, s.must, s.fragile = kindCustom, "must be a time such as 2006-01-02T15:04:05Z", true
		return nil
	case t == numberType:
		s.kind, s.must, s.fragile = kindCustom, "must be a number", true
		return nil
	case t == rawType:
		s.kind = kindAny
		return nil
	case t == m.known.upload:
		s.kind, s.must, s.upload = kindCustom, "must be a file", true
		return nil
	case m.known.optional(t):
		s.kind = kindOptional
		s.elem, err = m.of(t.Field(0).Type)
		return err
	case t.Kind() == reflect.Pointer:
		s.kind = kindPointer
		s.elem, err = m.of(t.Elem())
		return err
	case m.reply && (pointer.Implements(marshalType) || pointer.Implements(marshalTextType) || stdjson.WritesItself(pointer)):
		s.kind, s.escapes = kindCustom, true
		return nil
	case !m.reply && (pointer.Implements(jsonType) || pointer.Implements(textType) || stdjson.ReadsItself(pointer)):
		s.kind, s.must, s.escapes = kindCustom, "is not valid", true
		s.timeIndex = timeIn(t)
		s.fragile = s.timeIndex > 0
		return nil
	}
	switch t.Kind() {
	case reflect.String:
		s.kind = kindString
	case reflect.Bool:
		s.kind = kindBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		s.kind = kindInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		s.kind = kindUint
	case reflect.Float32, reflect.Float64:
		s.kind, s.must, s.fragile = kindFloat, "must be a number", true
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return fmt.Errorf("nothing can be decoded into interface %s", t)
		}
		s.kind = kindAny
	case reflect.Slice:
		if bytesIn(t) {
			s.kind, s.bytes, s.must = kindCustom, true, "must be a base64 string"
			return nil
		}
		s.kind = kindList
		s.elem, err = m.of(t.Elem())
	case reflect.Map:
		if t.Key().Kind() != reflect.String || reflect.PointerTo(t.Key()).Implements(textType) {
			return fmt.Errorf("the keys of %s are no strings", t)
		}
		s.kind = kindMap
		s.elem, err = m.of(t.Elem())
	case reflect.Struct:
		s.kind = kindObject
		err = m.members(s, t, nil)
		if len(s.fields) > 64 && !m.reply {
			return fmt.Errorf("%s has more than 64 fields", t)
		}
	default:
		return fmt.Errorf("type %s is not supported", t)
	}
	return err
}

// members adds the fields of t. t is the type of s, or is embedded in that type at index.
func (m *shapes) members(s *shape, t reflect.Type, index []int) error {
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
		if f.fallback != nil && !m.reply {
			return fmt.Errorf("field %s: %w", sf.Name, errNoDefault)
		}
		if f.json == "" {
			f.json = sf.Name
		}
		if err := s.add(f); err != nil {
			return err
		}
	}
	return nil
}

// add makes f a member of the object s.
func (s *shape) add(f *field) error {
	if s.byName == nil {
		s.byName = map[string]*field{}
	}
	if f.json != "" {
		if other := s.byName[f.json]; other != nil {
			return fmt.Errorf("fields %s and %s are both called %s", other.goName, f.goName, f.json)
		}
		s.byName[f.json] = f
	}
	f.bit = 1 << (len(s.fields) % 64)
	s.fields = append(s.fields, f)
	return nil
}

// member reads the tags of sf that do not depend on the field's source.
func (m *shapes) member(sf reflect.StructField, index []int) (*field, error) {
	f := &field{goName: sf.Name, index: index, doc: sf.Tag.Get("doc"), maxElems: math.MaxInt}
	name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
	f.json = name
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "":
		case "omitempty":
			f.omits = true
		case "omitzero":
			f.omits, f.omitsZero = true, true
		case "string":
			if !m.reply {
				return nil, fmt.Errorf("json option %q is not supported in a request", option)
			}
			f.shape = &shape{typ: reflect.TypeFor[string](), kind: kindString}
		default:
			return nil, fmt.Errorf("json option %q is not supported", option)
		}
	}
	f.xml = sf.Name
	if tag, ok := sf.Tag.Lookup("xml"); ok {
		name, options, _ := strings.Cut(tag, ",")
		f.attr = strings.HasPrefix(options, "attr")
		switch {
		case name == "-":
			f.xml = ""
		case strings.ContainsAny(name, "> ") || options != "" && options != "attr" && options != "omitempty" && options != "attr,omitempty":
			return nil, fmt.Errorf("xml tag %q: only a name and attr are supported", tag)
		case name != "":
			f.xml = name
		}
	}
	if f.shape != nil {
		return f, nil
	}
	var err error
	if f.shape, err = m.of(sf.Type); err != nil {
		return nil, err
	}
	return f, f.addRules(sf.Tag)
}

// settle makes the setters. It also computes checked, holds and fragile for shapes that may refer
// to each other in cycles.
func (m *shapes) settle() {
	for _, s := range m.seen {
		s.set, _, _ = setterOf(s)
	}
	for changed := true; changed; {
		changed = false
		for _, s := range m.seen {
			checked, holds, fragile := s.checked, s.escapes, s.fragile
			if s.elem != nil {
				checked, holds, fragile = checked || s.elem.checked, holds || s.elem.escapes, fragile || s.elem.fragile
			}
			for _, f := range s.fields {
				checked = checked || f.required || f.ruled() || f.shape.checked
				holds, fragile = holds || f.shape.escapes, fragile || f.shape.fragile
			}
			if checked != s.checked || holds != s.escapes || fragile != s.fragile {
				s.checked, s.escapes, s.fragile, changed = checked, holds, fragile, true
			}
		}
	}
}

// deref returns the value behind pointers and Optionals, none of which may be nil.
func (s *shape) deref(v reflect.Value) reflect.Value {
	for ; s.kind == kindPointer || s.kind == kindOptional; s = s.elem {
		if s.kind == kindOptional {
			v = v.Field(0)
		} else {
			v = v.Elem()
		}
	}
	return v
}

// bare strips pointers and Optional.
func (s *shape) bare() *shape {
	for s.kind == kindPointer || s.kind == kindOptional {
		s = s.elem
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

// encodable reports whether JSON can express v, a float or a custom value.
func (s *shape) encodable(v reflect.Value) bool {
	switch {
	case s.kind == kindFloat:
		return v.Float()-v.Float() == 0
	case s.typ == timeType:
		return syntax.FitsRFC3339(v.Interface().(time.Time))
	case s.typ == numberType:
		return v.String() == "" || syntax.IsNumber(v.String()) // encoding/json writes 0 for an empty json.Number
	case s.timeIndex > 0:
		return syntax.FitsRFC3339(v.Field(s.timeIndex - 1).Interface().(time.Time))
	}
	return true
}
