package route

import (
	"reflect"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/route/internal/syntax"
)

// array reads the elements of a list, after its opening bracket.
func (d *decoder) array(s *shape, of *field, v reflect.Value) bool {
	if d.Take(']') {
		d.depth--
		v.Set(reflect.MakeSlice(s.typ, 0, 0))
		return true
	}
	for i := 0; ; i++ {
		if i <= of.maxElems { // one more, for the rule to detect; the rest costs no memory
			if i == v.Cap() {
				if !d.allocate(max(4, i), s.elem.typ) {
					return false
				}
				v.Grow(max(4, i))
			}
			v.SetLen(i + 1)
		}
		d.s.pushElement(i)
		before := len(d.s.faults)
		switch {
		case i >= of.maxElems:
			if !d.skip() {
				return false
			}
		case !d.value(s.elem, element, v.Index(i)):
			return false
		case len(d.s.faults) == before:
			check(d.s, of.each, v.Index(i))
		}
		d.s.pop()
		switch {
		case d.Take(','):
		case d.Take(']'):
			d.depth--
			return true
		default:
			return false
		}
	}
}

// object reads a struct or a map.
func (d *decoder) object(s *shape, of *field, v reflect.Value) bool {
	var seen uint64
	var others names // names that are not fields
	if s.kind == kindMap {
		v.Set(reflect.MakeMap(s.typ))
	}
	next := 0
	for more := !d.Take('}'); more; {
		if d.Next() != '"' {
			return false
		}
		name, ok := d.name()
		if !ok || !d.Take(':') {
			return false
		}
		d.s.pushMember(name)
		var f *field
		if f, next = jsonField(s, name, next); f != nil {
			if seen&f.bit != 0 {
				d.s.faultAtPath(moreThanOnce)
				ok = d.skip()
			} else {
				ok = d.field(f, f.of(v))
			}
			seen |= f.bit
		} else if others.add(name) {
			ok = d.other(s, of, v, name)
		} else {
			d.s.faultAtPath(moreThanOnce)
			ok = d.skip()
		}
		if !ok {
			return false
		}
		d.s.pop()
		if more = d.Take(','); !more && !d.Take('}') {
			return false
		}
	}
	d.depth--
	for _, f := range s.fields {
		if f.required && f.json != "" && seen&f.bit == 0 {
			d.s.pushMember(f.json)
			d.s.faultAtPath("is required")
			d.s.pop()
		}
	}
	return true
}

// names is a set of names in one object. Up to eight names need no allocation.
type names struct {
	few  [8]string
	n    int
	more map[string]struct{}
}

// add reports whether name is new.
func (s *names) add(name string) bool {
	if slices.Contains(s.few[:s.n], name) {
		return false
	}
	if s.n < len(s.few) {
		s.few[s.n] = name
		s.n++
		return true
	}
	if s.more == nil {
		s.more = map[string]struct{}{}
	}
	before := len(s.more)
	s.more[name] = struct{}{}
	return len(s.more) > before
}

// name reads the name of a member. An unescaped name is a part of data.
func (d *decoder) name() (string, bool) {
	raw, escaped, ok := d.Literal()
	if escaped {
		raw = syntax.Unescape(raw)
	}
	return raw, ok
}

// jsonField returns the field of a name, and the index to try first for the next name. Members are
// usually in the order of the fields.
func jsonField(s *shape, name string, next int) (*field, int) {
	if name != "" { // "" is the name of fields that are not members
		for i := next; i < min(next+lookahead, len(s.fields)); i++ {
			if s.fields[i].json == name {
				return s.fields[i], i + 1
			}
		}
	}
	return s.byName[name], next
}

// other reads a member of a map, or an unknown member of a struct.
func (d *decoder) other(s *shape, of *field, v reflect.Value, name string) bool {
	if s.kind == kindMap && v.Len() <= of.maxElems { // one more, for the rule to detect
		if !d.allocate(2, s.elem.typ) { // one here and one in the map
			return false
		}
		elem := reflect.New(s.elem.typ).Elem()
		ok := d.value(s.elem, element, elem)
		if d.copies {
			name = strings.Clone(name)
		}
		v.SetMapIndex(reflect.ValueOf(name).Convert(s.typ.Key()), elem)
		return ok
	}
	if s.kind == kindObject && !d.allowUnknown {
		d.s.faultAtPath("is not a member")
	}
	return d.skip()
}
