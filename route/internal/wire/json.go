package wire

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spillway-go/spillway/route/internal/shape"
	"github.com/spillway-go/spillway/route/internal/stdjson"
	"github.com/spillway-go/spillway/route/internal/syntax"
)

// maxShared is the size of the largest body whose strings may be parts of one copy of the body.
// Strings of a larger body are copied, so that a kept word does not keep a megabyte alive.
const maxShared = 4 << 10

// JSON binds a JSON body by the decoder in this package. The decoders of the standard library
// stop at the first fault, do not tell absent from zero, accept the Go name of any field as a
// member, and are slower. Version 1 of encoding/json is also less strict. The standard library
// decodes only the types that this package cannot: interfaces, and types with decoding methods.
func (b *Binder) JSON(s *Scratch, v reflect.Value) {
	s.memory = b.Limits.Memory
	text := string(s.Body)
	d := decoder{Scanner: syntax.Scanner{Data: text}, s: s, b: b, maxDepth: b.Limits.Depth, copies: len(text) > maxShared}
	if !utf8.ValidString(text) {
		s.AddFatal(Fault{Pointer: "#", Detail: "is not valid UTF-8"})
		return
	}
	var ok bool
	if f := b.Plan.Whole; f != nil {
		ok = d.field(f, f.Of(v))
	} else {
		ok = d.value(b.Plan.Members, shape.Element, v)
	}
	if s.incomplete = !ok || !d.End(); s.incomplete && !d.reported {
		s.faultAtPath("is not valid JSON")
	}
	s.path = s.path[:0]
}

// decoder is a recursive decoder of JSON into a shape. It notes every fault, with a pointer, and
// continues. Its methods return false when they cannot continue: the text is not JSON or exceeds a
// limit.
type decoder struct {
	syntax.Scanner
	s        *Scratch
	depth    int
	maxDepth int
	b        *Binder
	copies   bool // strings are copies, not parts of Data
	reported bool // the reason to stop is already a fault
}

// field reads a value into a field and checks its rules at once, because here the value is known to
// have been sent, even if it is zero.
func (d *decoder) field(f *shape.Field, v reflect.Value) bool {
	null := d.Next() == 'n'
	before := len(d.s.Faults)
	if !d.value(f.Shape, f, v) {
		return false
	}
	faulty := len(d.s.Faults) > before
	if null {
		if k := f.Shape.Kind; f.Required && !faulty && k != shape.Any && k != shape.Optional {
			d.s.faultAtPath("is required")
		}
		return true
	}
	if len(f.Rules) == 0 {
		return true
	}
	s := f.Shape
	for ; s.Kind == shape.Pointer || s.Kind == shape.Optional; s = s.Elem {
		if s.Kind == shape.Optional {
			v = v.Field(0)
		} else {
			v = v.Elem()
		}
	}
	// A fault in an element does not change the length of the list.
	if !faulty || (s.Kind == shape.List || s.Kind == shape.Map) && !v.IsNil() {
		check(d.s, f.Rules, v)
	}
	return true
}

// value reads a value of shape s, the shape of a field or an element, into v, which is zero.
func (d *decoder) value(s *shape.Shape, of *shape.Field, v reflect.Value) bool {
	c := d.Next()
	for s.Kind == shape.Pointer || s.Kind == shape.Optional {
		if s.Kind == shape.Optional {
			v.Field(1).SetBool(true)
			v = v.Field(0)
		} else {
			if c == 'n' {
				return d.Word("null")
			}
			if !d.allocate(1, s.Elem.Type) {
				return false
			}
			v.Set(reflect.New(s.Elem.Type))
			v = v.Elem()
		}
		s = s.Elem
	}
	if s.Kind == shape.Any {
		return d.opaque(s, v)
	}
	if c == 'n' {
		if s.Kind != shape.List && s.Kind != shape.Map && !s.Bytes {
			d.s.faultAtPath("must not be null")
		}
		return d.Word("null")
	}
	if s.Kind == shape.Custom {
		return d.opaque(s, v)
	}
	if must := mismatch(s.Kind, c); must != "" {
		before := len(d.s.Faults)
		d.s.faultAtPath(must)
		if !d.skip() {
			if d.At == len(d.Data) || !startsValue(c) { // no value at all
				d.s.Faults = d.s.Faults[:before]
			}
			return false
		}
		return true
	}
	switch s.Kind {
	case shape.Object, shape.Map:
		return d.enter() && d.object(s, of, v)
	case shape.List:
		return d.enter() && d.array(s, of, v)
	case shape.String:
		text, ok := d.text()
		v.SetString(text)
		return ok
	case shape.Bool:
		v.SetBool(c == 't')
		return c == 't' && d.Word("true") || c == 'f' && d.Word("false")
	}
	return d.numeric(s, v)
}

// mismatch returns the fault if a value of kind k cannot begin with c, else "".
func mismatch(k shape.Kind, c byte) string {
	digit := c == '-' || '0' <= c && c <= '9'
	switch {
	case (k == shape.Object || k == shape.Map) && c != '{':
		return "must be an object"
	case k == shape.List && c != '[':
		return "must be an array"
	case k == shape.String && c != '"':
		return "must be a string"
	case k == shape.Bool && c != 't' && c != 'f':
		return "must be true or false"
	case k == shape.Float && !digit:
		return "must be a number"
	case (k == shape.Int || k == shape.Uint) && !digit:
		return shape.WholeNumber
	}
	return ""
}

// startsValue reports whether a JSON value can begin with c.
func startsValue(c byte) bool { return strings.IndexByte(`{["-0123456789tf`, c) >= 0 }

// enter reads the opening bracket of an object or array.
func (d *decoder) enter() bool {
	if d.depth++; d.depth > d.maxDepth {
		d.s.faultAtPath("is nested too deeply")
		d.reported = true
		return false
	}
	d.At++
	return true
}

func (d *decoder) allocate(n int, t reflect.Type) bool {
	d.reported = !d.s.allocate(n, t)
	return !d.reported
}

// text reads a string.
func (d *decoder) text() (string, bool) {
	raw, escaped, ok := d.Literal()
	switch {
	case escaped:
		return syntax.Unescape(raw), ok
	case d.copies:
		return strings.Clone(raw), ok
	}
	return raw, ok
}

// numeric reads a number into v, and notes a fault if the number does not fit.
func (d *decoder) numeric(s *shape.Shape, v reflect.Value) bool {
	text, whole, ok := d.Number()
	if !ok {
		return false
	}
	if s.Kind == shape.Int && !whole || s.Kind == shape.Uint && (!whole || text[0] == '-') {
		text, whole = syntax.Integer(text)
	}
	var err error
	switch bits := s.Type.Bits(); s.Kind {
	case shape.Int:
		var n int64
		if !whole {
			d.s.faultAtPath(shape.WholeNumber)
			return true
		}
		n, err = strconv.ParseInt(text, 10, bits)
		v.SetInt(n)
	case shape.Uint:
		var n uint64
		if !whole || text[0] == '-' {
			d.s.faultAtPath(shape.NaturalNumber)
			return true
		}
		n, err = strconv.ParseUint(text, 10, bits)
		v.SetUint(n)
	default:
		var n float64
		n, err = strconv.ParseFloat(text, bits)
		v.SetFloat(n)
	}
	if err != nil {
		d.s.faultAtPath(shape.OutOfRange)
	}
	return true
}

// opaque reads a value whose parts the shape does not know. The standard library decodes it,
// unless it is a time or a json.Number.
func (d *decoder) opaque(s *shape.Shape, v reflect.Value) bool {
	d.Next()
	start, before := d.At, len(d.s.Faults)
	if !d.skip() {
		return false
	}
	if len(d.s.Faults) == before && !d.decodeOpaque(s, v, d.Data[start:d.At]) {
		must := s.Must
		if must == "" {
			must = "is not valid"
		}
		d.s.faultAtPath(must)
	}
	return true
}

// decodeOpaque sets v to the JSON value in text, and reports whether v can hold that value.
func (d *decoder) decodeOpaque(s *shape.Shape, v reflect.Value, text string) bool {
	switch s.Type {
	case reflect.TypeFor[time.Time]():
		if text[0] != '"' {
			return false
		}
		if text = text[1 : len(text)-1]; strings.Contains(text, `\`) {
			text = syntax.Unescape(text)
		}
		return s.Set(v, text) == ""
	case reflect.TypeFor[json.Number]():
		if d.copies {
			text = strings.Clone(text)
		}
		return s.Set(v, text) == ""
	}
	return stdjson.Unmarshal([]byte(text), v.Addr().Interface()) == nil && (s.Kind == shape.Any || s.Encodable(v))
}

// skip reads any value and drops it. Its names must be unique too.
func (d *decoder) skip() bool {
	switch c := d.Next(); c {
	case '{':
		return d.enter() && d.object(nothing, shape.Element, reflect.Value{})
	case '[':
		if !d.enter() {
			return false
		}
		for i, more := 0, !d.Take(']'); more; i++ {
			d.s.pushElement(i)
			if !d.skip() {
				return false
			}
			d.s.pop()
			if more = d.Take(','); !more && !d.Take(']') {
				return false
			}
		}
		d.depth--
		return true
	case '"':
		_, _, ok := d.Literal()
		return ok
	case 't':
		return d.Word("true")
	case 'f':
		return d.Word("false")
	case 'n':
		return d.Word("null")
	}
	_, _, ok := d.Number()
	return ok
}

// nothing is the shape of an object that is dropped. It is neither an Object nor a Map, so that no
// member is kept, and none is a fault.
var nothing = &shape.Shape{Kind: shape.Any}
