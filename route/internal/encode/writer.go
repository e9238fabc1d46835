package encode

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/spillway-go/spillway/route/internal/stdjson"
)

var (
	timeOf   = reflect.TypeFor[time.Time]()
	numberOf = reflect.TypeFor[json.Number]()
)

// Writer describes how the values of one type are written as JSON. The output is byte for byte
// that of encoding/json, except that a slice or map is never null. encoding/json itself writes the
// types whose output might differ. A Writer is made once for a response type, and is recursive for
// a recursive type.
type Writer struct {
	kind   writeKind
	bits   int // size of a float
	elem   *Writer
	fields []member
}

type writeKind uint8

const (
	byLibrary writeKind = iota // by encoding/json, because of the type's methods or contents
	asObject
	asList
	asMap
	asPointer
	asOptional
	asString
	asBool
	asInt
	asUint
	asFloat
	asTime
	asBytes
)

type member struct {
	name      string // quoted, with a colon
	index     []int
	omitEmpty bool
	omitZero  bool
	optional  bool
	value     *Writer
}

// compiler makes one Writer for each type.
type compiler struct {
	seen     map[reflect.Type]*Writer
	optional func(reflect.Type) bool // a struct of a value and whether the value is set
}

// New describes how values of type t are written. library has the types of the parts that
// encoding/json itself writes.
func New(t reflect.Type, optional func(reflect.Type) bool) (w *Writer, library []reflect.Type) {
	m := compiler{map[reflect.Type]*Writer{}, optional}
	w = m.of(t)
	for t, part := range m.seen {
		if part.kind == byLibrary {
			library = append(library, t)
		}
	}
	return w, library
}

func (m compiler) of(t reflect.Type) *Writer {
	if w := m.seen[t]; w != nil {
		return w
	}
	w := &Writer{}
	m.seen[t] = w
	pointer := reflect.PointerTo(t)
	switch {
	case t == timeOf:
		w.kind = asTime
		return w
	case m.optional(t):
		w.kind, w.elem = asOptional, m.of(t.Field(0).Type)
		return w
	case stdjson.Marshals(pointer) || t == numberOf:
		return w
	}
	switch t.Kind() {
	case reflect.String:
		w.kind = asString
	case reflect.Bool:
		w.kind = asBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		w.kind = asInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		w.kind = asUint
	case reflect.Float32, reflect.Float64:
		w.kind, w.bits = asFloat, t.Bits()
	case reflect.Pointer:
		w.kind, w.elem = asPointer, m.of(t.Elem())
	case reflect.Slice:
		switch {
		case t.Elem().Kind() != reflect.Uint8:
			w.kind, w.elem = asList, m.of(t.Elem())
		case !stdjson.Marshals(reflect.PointerTo(t.Elem())):
			w.kind = asBytes
		}
	case reflect.Map:
		if t.Key().Kind() == reflect.String && !stdjson.Marshals(reflect.PointerTo(t.Key())) {
			w.kind, w.elem = asMap, m.of(t.Elem())
		}
	case reflect.Struct:
		if fields, ok := m.fields(t, nil, map[string]bool{}); ok {
			w.kind, w.fields = asObject, fields
		}
	}
	return w
}

// fields lists the members of t, which is embedded at index. ok is false if encoding/json might
// write other members, or write them in another form.
func (m compiler) fields(t reflect.Type, index []int, taken map[string]bool) (fields []member, ok bool) {
	for i := range t.NumField() {
		sf := t.Field(i)
		at := append(append([]int(nil), index...), i)
		tag, tagged := sf.Tag.Lookup("json")
		switch {
		case sf.Anonymous:
			if tagged || sf.Type.Kind() != reflect.Struct || stdjson.Marshals(reflect.PointerTo(sf.Type)) {
				return nil, false
			}
			inner, ok := m.fields(sf.Type, at, taken)
			if !ok {
				return nil, false
			}
			fields = append(fields, inner...)
			continue
		case !sf.IsExported() || tag == "-":
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if name == "" {
			name = sf.Name
		}
		if taken[name] || !simple(name) {
			return nil, false
		}
		taken[name] = true
		f := member{name: `"` + name + `":`, index: at, optional: m.optional(sf.Type), value: m.of(sf.Type)}
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "":
			case "omitempty":
				f.omitEmpty = true
			case "omitzero":
				if f.omitZero = true; !f.optional && sf.Type != timeOf && knowsZero(sf.Type) {
					return nil, false
				}
			default:
				return nil, false
			}
		}
		fields = append(fields, f)
	}
	return fields, true
}

// knowsZero reports whether an IsZero method may decide if a value of type t is zero.
func knowsZero(t reflect.Type) bool {
	zeroer := reflect.TypeFor[interface{ IsZero() bool }]()
	return t.Kind() == reflect.Interface || t.Implements(zeroer) || reflect.PointerTo(t).Implements(zeroer)
}

// simple reports whether every version of encoding/json writes name without escapes.
func simple(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-' && len(name) > 1, c == '.', c == '$', c == '@':
		default:
			return false
		}
	}
	return name != ""
}
