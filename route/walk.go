package route

import (
	"bytes"
	"errors"
	"reflect"
	"strconv"
	"unicode/utf8"
)

var errMalformed = errors.New("malformed")

// walk reads the JSON body and notes every way in which it is not a value of
// shape, with a pointer to each. It reports whether there was none. When s.sent
// is set, it also notes there what the body has.
func (c *core) walk(s *scratch, shape *shape) bool {
	before := len(s.faults)
	w := walker{s: s, data: s.body, lax: c.lax, most: c.limits.Depth}
	if !utf8.Valid(s.body) {
		s.here("is not valid UTF-8")
		return false
	}
	if !w.value(shape) || !w.end() {
		if len(s.faults) == before || !w.told {
			s.here("is not valid JSON")
		}
	}
	s.path = s.path[:0]
	return len(s.faults) == before
}

// value reads one value of shape s; nil means any.
func (w *walker) value(s *shape) bool {
	c := w.next()
	if w.s.sent != nil && c != 'n' {
		w.s.sent[w.s.pointer()] = struct{}{}
	}
	for s != nil && (s.kind == kindPointer || s.kind == kindOptional) {
		if s.kind == kindPointer && c == 'n' {
			return w.word("null")
		}
		s = s.elem
	}
	if s == nil || s.kind == kindAny {
		return w.any(nil)
	}
	if c == 'n' {
		if s.kind != kindList && s.kind != kindMap && s.typ != bytesType {
			w.s.here("must not be null")
		}
		return w.word("null")
	}
	if s.kind == kindCustom {
		return w.custom(s)
	}
	if must := mismatch(s.kind, c); must != "" {
		if plausible(c) {
			w.s.here(must)
		}
		return w.any(nil)
	}
	switch s.kind {
	case kindObject, kindMap, kindList:
		return w.any(s)
	case kindString:
		_, ok := w.string()
		return ok
	case kindBool:
		return w.any(nil)
	}
	return w.number(s)
}

// mismatch says what a value of kind k must be when it does not begin with c.
func mismatch(k kind, c byte) string {
	digit := c == '-' || '0' <= c && c <= '9'
	switch {
	case k == kindObject && c != '{', k == kindMap && c != '{':
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

// plausible reports whether a JSON value can begin with c.
func plausible(c byte) bool { return bytes.IndexByte([]byte(`{["-0123456789tf`), c) >= 0 }

// any reads a value whose first byte was looked at: an object, map or list of
// shape s, or anything when s is nil.
func (w *walker) any(s *shape) bool {
	switch c := w.next(); c {
	case '{', '[':
		if w.depth++; w.depth > w.most {
			w.s.here("is nested too deeply")
			w.told = true
			return false
		}
		w.at++
		var ok bool
		if c == '{' {
			ok = w.object(s)
		} else {
			ok = w.array(s)
		}
		w.depth--
		return ok
	case '"':
		_, ok := w.string()
		return ok
	case 't':
		return w.word("true")
	case 'f':
		return w.word("false")
	case 'n':
		return w.word("null")
	}
	return w.number(nil)
}

func (w *walker) array(s *shape) bool {
	if w.take(']') {
		return true
	}
	var elem *shape
	if s != nil {
		elem = s.elem
	}
	for i := 0; ; i++ {
		w.s.element(i)
		if !w.value(elem) {
			return false
		}
		w.s.up()
		if w.take(']') {
			return true
		}
		if !w.take(',') {
			return false
		}
	}
}

// member returns the field that a string literal names, or nil.
func (s *shape) member(raw []byte) *field {
	if bytes.IndexByte(raw, '\\') >= 0 {
		return s.byName[unquote(raw)]
	}
	return s.byName[string(raw[1:len(raw)-1])] // allocates nothing
}

func (w *walker) object(s *shape) bool {
	var seen uint64
	var others map[string]struct{} // names that are no fields
	if !w.take('}') {
		for {
			if w.next() != '"' {
				return false
			}
			raw, ok := w.string()
			if !ok || !w.take(':') {
				return false
			}
			var f *field
			if s != nil && s.kind == kindObject {
				f = s.member(raw)
			}
			var inside *shape
			twice := false
			if f != nil {
				w.s.member(f.json)
				inside, twice = f.shape, seen&f.bit != 0
				seen |= f.bit
			} else {
				name := unquote(raw)
				w.s.member(name)
				if s != nil && s.kind == kindMap {
					inside = s.elem
				}
				if _, twice = others[name]; !twice {
					if others == nil {
						others = map[string]struct{}{}
					}
					others[name] = struct{}{}
				}
				if s != nil && s.kind == kindObject && !w.lax && !twice {
					w.s.here("is not a member")
				}
			}
			if twice {
				w.s.here("is given more than once")
			}
			if !w.value(inside) {
				return false
			}
			w.s.up()
			if w.take('}') {
				break
			}
			if !w.take(',') {
				return false
			}
		}
	}
	if s != nil {
		for _, f := range s.fields {
			if f.required && f.json != "" && seen&f.bit == 0 {
				w.s.member(f.json)
				w.s.here("is required")
				w.s.up()
			}
		}
	}
	return true
}

// number reads a number that fits into s, which may be nil.
func (w *walker) number(s *shape) bool {
	start := w.at
	w.take1('-')
	switch {
	case w.take1('0'):
	case !w.digits():
		return false
	}
	whole := true
	if w.take1('.') {
		if whole = false; !w.digits() {
			return false
		}
	}
	if w.take1('e') || w.take1('E') {
		_ = w.take1('+') || w.take1('-')
		if whole = false; !w.digits() {
			return false
		}
	}
	if s == nil {
		return true
	}
	text := string(w.data[start:w.at])
	var err error
	switch bits := s.typ.Bits(); s.kind {
	case kindInt:
		if !whole {
			w.s.here(wholeNumber)
			return true
		}
		_, err = strconv.ParseInt(text, 10, bits)
	case kindUint:
		if !whole || text[0] == '-' {
			w.s.here("must be a whole number that is not negative")
			return true
		}
		_, err = strconv.ParseUint(text, 10, bits)
	default:
		_, err = strconv.ParseFloat(text, bits)
	}
	if err != nil {
		w.s.here(outOfRange)
	}
	return true
}

// custom asks a type that decodes itself what it thinks of its value.
func (w *walker) custom(s *shape) bool {
	start := w.at
	before := len(w.s.faults)
	if !w.any(nil) {
		return false
	}
	if len(w.s.faults) > before {
		return true
	}
	if decodeJSON(w.data[start:w.at], reflect.New(s.typ).Interface(), !w.lax) != nil {
		w.s.here(s.must)
	}
	return true
}
