package openapi

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spillway-go/spillway/route/internal/shape"
	"github.com/spillway-go/spillway/route/internal/syntax"
)

// schemas describes shapes as JSON Schema. Named structs become components.
type schemas struct {
	named        object
	numbers      numbers
	names        map[schemaKey]string
	allowUnknown bool           // the current request may have unknown members
	nulls        bool           // a slice or map in the current response may be null
	within       []*shape.Shape // maps and lists around the current shape, inside its component
}

// schemaKey identifies a component. The request and the response schema of a type differ in which
// members are required and which may be null. With allowUnknown a schema allows additional members.
type schemaKey struct {
	typ                           reflect.Type
	response, allowUnknown, nulls bool
}

func newSchemas() *schemas {
	return &schemas{named: object{"Problem": problemSchema}, numbers: numbers{}, names: map[schemaKey]string{}}
}

// members describes an object.
func (d *schemas) members(fields []*shape.Field, name func(*shape.Field) string, of func(*shape.Field) object, response bool) object {
	properties, required := object{}, []string{}
	for _, f := range fields {
		n := name(f)
		if n == "" {
			continue
		}
		property := of(f)
		if f.Doc != "" {
			property["description"] = f.Doc
		}
		properties[n] = property
		if !response && f.Required || response && !f.Omits {
			required = append(required, n)
		}
	}
	schema := object{"type": "object", "properties": properties}
	if !response && !d.allowUnknown {
		schema["additionalProperties"] = false
	}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// field describes a member or the whole of a JSON body. Null means absent.
func (d *schemas) field(f *shape.Field) object {
	schema := d.of(f.Shape, false)
	if f.Required {
		schema = notNull(schema)
	}
	return ruled(schema, f)
}

// notNull removes null from the types that a schema allows.
func notNull(schema object) object {
	if types, ok := schema["type"].([]string); ok {
		schema["type"] = types[0]
	}
	if either, ok := schema["anyOf"].([]object); ok {
		return either[0]
	}
	return schema
}

// text describes a field that is sent as text. Type and format are those of the text.
func (d *schemas) text(f *shape.Field) object {
	s := f.Shape.Bare()
	if s.Kind == shape.List {
		return ruled(object{"type": "array", "items": d.word(s.Elem.Bare())}, f)
	}
	return ruled(d.word(s), f)
}

func (d *schemas) word(s *shape.Shape) object {
	switch {
	case s.Upload:
		return object{"type": "string", "format": "binary"}
	case s.Type == reflect.TypeFor[time.Duration](), s.Bytes:
		return object{"type": "string"}
	}
	return d.of(s, false)
}

// of describes the JSON form of a shape, in a response or a request.
func (d *schemas) of(s *shape.Shape, response bool) object {
	switch s.Kind {
	case shape.Object:
		return d.component(s, response)
	case shape.Map, shape.List:
		return d.elements(s, response)
	case shape.Pointer:
		return nullable(d.of(s.Elem, response))
	case shape.Optional:
		if response {
			return nullable(d.of(s.Elem, response))
		}
		return d.of(s.Elem, response)
	case shape.String:
		return object{"type": "string"}
	case shape.Bool:
		return object{"type": "boolean"}
	case shape.Float:
		return object{"type": "number", "format": map[int]string{32: "float", 64: "double"}[s.Type.Bits()]}
	case shape.Int:
		if s.Type.Bits() == 64 {
			return object{"type": "integer", "format": "int64"}
		}
		return object{"type": "integer", "minimum": int64(-1) << (s.Type.Bits() - 1), "maximum": int64(1)<<(s.Type.Bits()-1) - 1}
	case shape.Uint:
		if s.Type.Bits() == 64 {
			return object{"type": "integer", "minimum": 0}
		}
		return object{"type": "integer", "minimum": 0, "maximum": int64(1)<<s.Type.Bits() - 1}
	case shape.Custom:
		switch {
		case s.Type == reflect.TypeFor[time.Time]():
			return object{"type": "string", "format": "date-time"}
		case s.Type == reflect.TypeFor[json.Number]():
			return object{"type": "number"}
		case s.Bytes:
			return d.slice(object{"type": "string", "contentEncoding": "base64"}, response)
		case implements[json.Unmarshaler](s.Type), implements[json.Marshaler](s.Type):
			return object{}
		case implements[encoding.TextUnmarshaler](s.Type), implements[encoding.TextMarshaler](s.Type):
			return object{"type": "string"}
		}
	}
	return object{}
}

// elements describes a map or a list. An element of the same type may be anything, because only a
// component can refer to itself.
func (d *schemas) elements(s *shape.Shape, response bool) object {
	within := d.within
	if slices.Contains(within, s) {
		return object{}
	}
	d.within = append(within, s)
	elem := d.of(s.Elem, response)
	d.within = within
	if s.Kind == shape.Map {
		return d.slice(object{"type": "object", "additionalProperties": elem}, response)
	}
	return d.slice(object{"type": "array", "items": elem}, response)
}

// implements reports whether a pointer to a value of type t has the methods of I.
func implements[I any](t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[I]())
}

// slice returns the schema of a slice or map. In a request null means absent. A response has no
// null, unless encoding/json writes a part of it.
func (d *schemas) slice(schema object, response bool) object {
	if response && !d.nulls {
		return schema
	}
	return nullable(schema)
}

// nullable adds null to the types that a schema allows.
func nullable(schema object) object {
	switch t := schema["type"].(type) {
	case string:
		schema["type"] = []string{t, "null"}
	case nil:
		if schema["$ref"] != nil {
			return object{"anyOf": []object{schema, {"type": "null"}}}
		}
	}
	return schema
}

// component describes a struct once and returns a reference to the description.
func (d *schemas) component(s *shape.Shape, response bool) object {
	describe := func() object {
		of := d.field
		if response {
			of = func(f *shape.Field) object {
				if f.OmitsZero && f.Shape.Kind == shape.Optional {
					return d.of(f.Shape.Elem, true)
				}
				return d.of(f.Shape, true)
			}
		}
		return d.members(s.Fields, func(f *shape.Field) string { return f.JSON }, of, response)
	}
	if s.Type.Name() == "" {
		return describe()
	}
	key := schemaKey{s.Type, response, !response && d.allowUnknown, response && d.nulls}
	name, known := d.names[key]
	if !known {
		name = d.free(s.Type, response)
		d.names[key] = name
		d.named[name] = object{} // reserves the name, to which a recursive type refers
		within := d.within
		d.within = nil
		d.named[name] = describe()
		d.within = within
	}
	return object{"$ref": "#/components/schemas/" + name}
}

// free returns an unused component name: the type's name, with Input appended for a request, and a
// number if that name is taken.
func (d *schemas) free(t reflect.Type, response bool) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, t.Name())
	name := strings.ToUpper(clean[:1]) + clean[1:]
	if !response {
		name += "Input"
	}
	return d.unused(name)
}

// unused returns name, with a number appended if name is taken. The name Problem is reserved by newSchemas.
func (d *schemas) unused(name string) string { return d.numbers.unused(d.named, name) }

// ruled adds the rules of the validate tag. OpenAPI 3.1 allows them beside a $ref.
func ruled(schema object, f *shape.Field) object {
	s, r := f.Shape.Bare(), f.Tags
	low, high := "minimum", "maximum"
	target := schema
	switch s.Kind {
	case shape.String:
		low, high = "minLength", "maxLength"
	case shape.Map:
		low, high = "minProperties", "maxProperties"
	case shape.List:
		low, high = "minItems", "maxItems"
		if items, ok := schema["items"].(object); ok {
			target = items
		}
	}
	if s.Type != reflect.TypeFor[time.Duration]() || schema["type"] != "string" { // a duration as text has no numeric bounds
		if r.Min != nil {
			schema[low] = r.Min
		}
		if r.Max != nil {
			schema[high] = r.Max
		}
	}
	if pattern, ok := syntax.ECMA(r.Pattern); ok && pattern != "" {
		target["pattern"] = pattern
	}
	if r.Format != "" {
		target["format"] = r.Format
	}
	if r.Enum != nil {
		values := literals(s, r.Enum)
		if _, null := target["type"].([]string); null {
			values = append(values, nil)
		}
		target["enum"] = values
	}
	if f.Fallback != nil {
		values := literals(s, f.Fallback)
		if s.Kind == shape.List {
			schema["default"] = values
		} else {
			schema["default"] = values[0]
		}
	}
	return schema
}

// literals returns the values of texts from tags, as values of s or of its elements.
func literals(s *shape.Shape, texts []string) (values []any) {
	if s.Kind == shape.List {
		s = s.Elem.Bare()
	}
	for _, text := range texts {
		switch {
		case (s.Kind == shape.Int || s.Kind == shape.Uint || s.Kind == shape.Float || s.Type == reflect.TypeFor[json.Number]()) && s.Type != reflect.TypeFor[time.Duration]():
			values = append(values, number(text))
		case s.Kind == shape.Bool:
			values = append(values, text == "true")
		default:
			values = append(values, text)
		}
	}
	return values
}

// number converts text to an int64, or to a float64 if it is no int64.
func number(digits string) any {
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return n
	}
	f, _ := strconv.ParseFloat(digits, 64)
	return f
}

var problemSchema = object{
	"type": "object", "required": []string{"title", "status"},
	"properties": object{
		"type":   object{"type": "string", "format": "uri-reference"},
		"title":  object{"type": "string"},
		"status": object{"type": "integer", "minimum": 100, "maximum": 999},
		"detail": object{"type": "string"},
		"errors": object{"type": "array", "items": object{
			"type": "object", "required": []string{"detail"},
			"properties": object{
				"detail":    object{"type": "string"},
				"pointer":   object{"type": "string"},
				"parameter": object{"type": "string"},
				"in":        object{"type": "string", "enum": []string{"path", "query", "header", "form"}},
			},
		}},
	},
}
