package route

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spillway-go/spillway/route/internal/stdjson"
	"github.com/spillway-go/spillway/route/internal/syntax"
)

// maxShared is the size of the largest body whose strings may be parts of one copy of the body.
// Strings of a larger body are copied, so that a kept word does not keep a megabyte alive.
const maxShared = 4 << 10

// json binds a JSON body by a decoder of this package. The decoders of the standard library
// stop at the first fault, do not tell absent from zero, accept the Go name of any field as a
// member, and are slower. Version 1 of encoding/json is also less strict. The standard library
// decodes only the types that this package cannot: interfaces, and types with decoding methods.
func (b *binder) json(s *scratch, v reflect.Value) {
	s.memory = b.limits.Memory
	text := string(s.body)
	d := decoder{Scanner: syntax.Scanner{Data: text}, s: s, allowUnknown: s.allowUnknown, maxDepth: b.limits.Depth, copies: len(text) > maxShared}
	if !utf8.ValidString(text) {
		s.addFatal(wireFault{Pointer: "#", Detail: "is not valid UTF-8"})
		return
	}
	var ok bool
	if f := b.plan.whole; f != nil {
		ok = d.field(f, f.of(v))
	} else {
		ok = d.value(b.plan.members, element, v)
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
	s            *scratch
	depth        int
	maxDepth     int
	allowUnknown bool
	copies       bool // strings are copies, not parts of data
	reported     bool // the reason to stop is already a fault
}

// field reads a value into a field and checks its rules at once, because here the value is known to
// have been sent, even if it is zero.
func (d *decoder) field(f *field, v reflect.Value) bool {
	null := d.Next() == 'n'
	before := len(d.s.faults)
	if !d.value(f.shape, f, v) {
		return false
	}
	faulty := len(d.s.faults) > before
	if null {
		if k := f.shape.kind; f.required && !faulty && k != kindAny && k != kindOptional {
			d.s.faultAtPath("is required")
		}
		return true
	}
	if len(f.rules) == 0 {
		return true
	}
	s := f.shape
	for ; s.kind == kindPointer || s.kind == kindOptional; s = s.elem {
		if s.kind == kindOptional {
			v = v.Field(0)
		} else {
			v = v.Elem()
		}
	}
	// A fault in an element does not change the length of the list.
	if !faulty || (s.kind == kindList || s.kind == kindMap) && !v.IsNil() {
		check(d.s, f.rules, v)
	}
	return true
}

// value reads a value of shape s, the shape of a field or an element, into v, which is zero.
func (d *decoder) value(s *shape, of *field, v reflect.Value) bool {
	c := d.Next()
	for s.kind == kindPointer || s.kind == kindOptional {
		if s.kind == kindOptional {
			v.Field(1).SetBool(true)
			v = v.Field(0)
		} else {
			if c == 'n' {
				return d.Word("null")
			}
			if !d.allocate(1, s.elem.typ) {
				return false
			}
			v.Set(reflect.New(s.elem.typ))
			v = v.Elem()
		}
		s = s.elem
	}
	if s.kind == kindAny {
		return d.foreign(s, v)
	}
	if c == 'n' {
		if s.kind != kindList && s.kind != kindMap && !s.bytes {
			d.s.faultAtPath("must not be null")
		}
		return d.Word("null")
	}
	if s.kind == kindCustom {
		return d.foreign(s, v)
	}
	if must := mismatch(s.kind, c); must != "" {
		before := len(d.s.faults)
		d.s.faultAtPath(must)
		if !d.skip() {
			if d.At == len(d.Data) || !startsValue(c) { // no value at all
				d.s.faults = d.s.faults[:before]
			}
			return false
		}
		return true
	}
	switch s.kind {
	case kindObject, kindMap:
		return d.enter() && d.object(s, of, v)
	case kindList:
		return d.enter() && d.array(s, of, v)
	case kindString:
		text, ok := d.text()
		v.SetString(text)
		return ok
	case kindBool:
		v.SetBool(c == 't')
		return c == 't' && d.Word("true") || c == 'f' && d.Word("false")
	}
	return d.numeric(s, v)
}

// mismatch returns the fault if a value of kind k cannot begin with c, else "".
func mismatch(k kind, c byte) string {
	digit := c == '-' || '0' <= c && c <= '9'
	switch {
	case (k == kindObject || k == kindMap) && c != '{':
		return "must be an object"
	case k == kindList && c != '[':
		return "must be an array"
	case k == kindString && c != '"':
		return "must be a string"
	case k == kindBool && c != 't' && c != 'f':
		return "must be true or false"
	case k == kindFloat && !digit:
		return "must be a number"
	case (k == kindInt || k == kindUint) && !digit:
		return wholeNumber
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
func (d *decoder) numeric(s *shape, v reflect.Value) bool {
	text, whole, ok := d.Number()
	if !ok {
		return false
	}
	if s.kind == kindInt && !whole || s.kind == kindUint && (!whole || text[0] == '-') {
		text, whole = syntax.Integer(text)
	}
	var err error
	switch bits := s.typ.Bits(); s.kind {
	case kindInt:
		var n int64
		if !whole {
			d.s.faultAtPath(wholeNumber)
			return true
		}
		n, err = strconv.ParseInt(text, 10, bits)
		v.SetInt(n)
	case kindUint:
		var n uint64
		if !whole || text[0] == '-' {
			d.s.faultAtPath(naturalNumber)
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
		d.s.faultAtPath(outOfRange)
	}
	return true
}

// foreign reads a value whose parts this package does not know. The standard library decodes it,
// unless it is a time or a json.Number.
func (d *decoder) foreign(s *shape, v reflect.Value) bool {
	d.Next()
	start, before := d.At, len(d.s.faults)
	if !d.skip() {
		return false
	}
	if len(d.s.faults) == before && !d.decodeForeign(s, v, d.Data[start:d.At]) {
		must := s.must
		if must == "" {
			must = "is not valid"
		}
		d.s.faultAtPath(must)
	}
	return true
}

// decodeForeign sets v to the JSON value in text, and reports whether v can hold that value.
func (d *decoder) decodeForeign(s *shape, v reflect.Value, text string) bool {
	switch s.typ {
	case reflect.TypeFor[time.Time]():
		if text[0] != '"' {
			return false
		}
		if text = text[1 : len(text)-1]; strings.Contains(text, `\`) {
			text = syntax.Unescape(text)
		}
		return s.set(v, text) == ""
	case reflect.TypeFor[json.Number]():
		if d.copies {
			text = strings.Clone(text)
		}
		return s.set(v, text) == ""
	}
	return stdjson.Unmarshal([]byte(text), v.Addr().Interface()) == nil && (s.kind == kindAny || s.encodable(v))
}

// skip reads any value and drops it. Its names must be unique too.
func (d *decoder) skip() bool {
	switch c := d.Next(); c {
	case '{':
		return d.enter() && d.object(nothing, element, reflect.Value{})
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

// nothing is an object without known members.
var nothing = &shape{kind: kindAny}
