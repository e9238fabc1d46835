// Package encode writes responses as JSON: byte for byte as encoding/json does, except that a nil
// slice or map is an empty one.
package encode

import (
	"bytes"
	"encoding/base64"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spillway-go/spillway/route/internal/stdjson"
)

// Output is the pooled buffer of one response.
type Output struct {
	buf     bytes.Buffer
	encoder stdjson.Encoder
}

// maxKept is the size in bytes of the largest buffer that is kept.
const maxKept = 64 << 10

// Init completes o, which must not be copied afterwards.
func (o *Output) Init() { o.encoder = stdjson.NewEncoder(&o.buf) }

// Clear resets o. It overwrites the contents of the buffer.
func (o *Output) Clear() {
	out := o.buf.Bytes()
	if cap(out) > maxKept {
		o.buf = bytes.Buffer{} // at the same address, because the encoder writes there
		return
	}
	clear(out)
	o.buf.Reset()
}

// Bytes returns the JSON until the next Clear.
func (o *Output) Bytes() []byte { return o.buf.Bytes() }

// Encode appends the JSON of v. v is a pointer to a value of the type that w describes.
func (o *Output) Encode(w *Writer, v any) error {
	if w.kind == byLibrary {
		return o.encoder.Encode(&o.buf, v)
	}
	out, err := w.append(o.buf.AvailableBuffer(), reflect.ValueOf(v).Elem(), 0)
	_, _ = o.buf.Write(out) // no copy, unless out has grown; after an error too, to be cleared
	return err
}

// deepest is the nesting depth at which encoding/json takes over, which distinguishes deep values
// from cyclic ones.
const deepest = 1000

// append appends v, which is addressable.
func (w *Writer) append(b []byte, v reflect.Value, depth int) ([]byte, error) {
	switch w.kind {
	case asString:
		return appendString(b, v.String()), nil
	case asBool:
		return strconv.AppendBool(b, v.Bool()), nil
	case asInt:
		return strconv.AppendInt(b, v.Int(), 10), nil
	case asUint:
		return strconv.AppendUint(b, v.Uint(), 10), nil
	case asFloat:
		if f := v.Float(); f-f == 0 {
			return appendFloat(b, f, w.bits), nil
		}
	case asTime:
		start := len(b)
		b = append(b, '"')
		if b, err := v.Addr().Interface().(*time.Time).AppendText(b); err == nil {
			return append(b, '"'), nil
		}
		b = b[:start]
	case asBytes:
		b = base64.StdEncoding.AppendEncode(append(b, '"'), v.Bytes())
		return append(b, '"'), nil
	case asOptional:
		if !v.Field(1).Bool() {
			return append(b, "null"...), nil
		}
		return w.elem.append(b, v.Field(0), depth)
	case asPointer, asList, asMap, asObject:
		if depth < deepest {
			return w.nested(b, v, depth+1)
		}
	}
	more, err := stdjson.Marshal(v.Addr().Interface())
	return append(b, more...), err
}

// nested appends a value that contains other values.
func (w *Writer) nested(b []byte, v reflect.Value, depth int) (_ []byte, err error) {
	switch w.kind {
	case asPointer:
		if v.IsNil() {
			return append(b, "null"...), nil
		}
		return w.elem.append(b, v.Elem(), depth)
	case asList:
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = w.elem.append(b, v.Index(i), depth); err != nil {
				return b, err
			}
		}
		return append(b, ']'), nil
	case asMap:
		return w.members(b, v, depth)
	}
	b = append(b, '{')
	first := len(b)
	for i := range w.fields {
		f := &w.fields[i]
		var value reflect.Value
		if len(f.index) == 1 {
			value = v.Field(f.index[0])
		} else {
			value = v.FieldByIndex(f.index)
		}
		if f.omitZero && f.zero(value) || f.omitEmpty && empty(value) {
			continue
		}
		if len(b) > first {
			b = append(b, ',')
		}
		if b, err = f.value.append(append(b, f.name...), value, depth); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

// members appends a map, sorted by key.
func (w *Writer) members(b []byte, v reflect.Value, depth int) (_ []byte, err error) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(x, y reflect.Value) int { return strings.Compare(x.String(), y.String()) })
	value := reflect.New(v.Type().Elem()).Elem() // addressable, as append requires
	b = append(b, '{')
	for i, key := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		value.Set(v.MapIndex(key))
		if b, err = w.elem.append(append(appendString(b, key.String()), ':'), value, depth); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

// zero reports whether omitzero leaves out v.
func (f *member) zero(v reflect.Value) bool {
	switch {
	case f.optional:
		return !v.Field(1).Bool()
	case f.value.kind == asTime:
		return v.Addr().Interface().(*time.Time).IsZero()
	}
	return v.IsZero()
}

// empty reports whether omitempty leaves out v.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.String, reflect.Array:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

// appendFloat appends f in the format of ECMAScript.
func appendFloat(b []byte, f float64, bits int) []byte {
	abs := math.Abs(f)
	small, large := abs < 1e-6, abs >= 1e21
	if bits == 32 {
		small, large = float32(abs) < 1e-6, float32(abs) >= 1e21
	}
	if abs == 0 || !small && !large {
		return strconv.AppendFloat(b, f, 'f', -1, bits)
	}
	b = strconv.AppendFloat(b, f, 'e', -1, bits)
	if tens := len(b) - 2; b[tens] == '0' { // e-07
		b = append(b[:tens], b[tens+1])
	}
	return b
}

// asItIs has the ASCII characters that need no escape, in HTML either.
var asItIs = func() (set [utf8.RuneSelf]bool) {
	for c := range set {
		set[c] = c >= ' ' && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	return set
}()

func appendString(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	from := 0 // start of the text not yet appended
	for i := 0; i < len(s); {
		c, size := rune(s[i]), 1
		if c < utf8.RuneSelf {
			if asItIs[c] {
				i++
				continue
			}
		} else if c, size = utf8.DecodeRuneInString(s[i:]); c != '\u2028' && c != '\u2029' && (c != utf8.RuneError || size > 1) {
			i += size
			continue
		}
		b = append(b, s[from:i]...)
		switch c {
		case utf8.RuneError:
			b = append(b, stdjson.InvalidUTF8...)
		case '"', '\\':
			b = append(b, '\\', byte(c))
		case '\b':
			b = append(b, `\b`...)
		case '\f':
			b = append(b, `\f`...)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		default:
			b = append(b, '\\', 'u', digits[c>>12], digits[c>>8&15], digits[c>>4&15], digits[c&15])
		}
		i += size
		from = i
	}
	return append(append(b, s[from:]...), '"')
}
