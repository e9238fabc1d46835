package wire

import (
	"reflect"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/route/internal/shape"
	"github.com/spillway-go/spillway/route/internal/syntax"
)

// array reads the elements of a list, after its opening bracket.
func (d *decoder) array(s *shape.Shape, of *shape.Field, v reflect.Value) bool {
	if d.Take(']') {
		d.depth--
		v.Set(reflect.MakeSlice(s.Type, 0, 0))
		return true
	}
	for i := 0; ; i++ {
		if i <= of.MaxElems { // one more, for the rule to detect; the rest costs no memory
			if i == v.Cap() {
				if !d.allocate(max(4, i), s.Elem.Type) {
					return false
				}
				v.Grow(max(4, i))
			}
			v.SetLen(i + 1)
		}
		d.s.pushElement(i)
		before := len(d.s.Faults)
		switch {
		case i >= of.MaxElems:
			if !d.skip() {
				return false
			}
		case !d.value(s.Elem, shape.Element, v.Index(i)):
			return false
		case len(d.s.Faults) == before:
			check(d.s, of.Each, v.Index(i))
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
func (d *decoder) object(s *shape.Shape, of *shape.Field, v reflect.Value) bool {
	var seen uint64
	var others names // names that are not fields
	if s.Kind == shape.Map {
		v.Set(reflect.MakeMap(s.Type))
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
		var f *shape.Field
		if f, next = jsonField(s, name, next); f != nil {
			if seen&f.Bit != 0 {
				d.s.faultAtPath(MoreThanOnce)
				ok = d.skip()
			} else {
				ok = d.field(f, f.Of(v))
			}
			seen |= f.Bit
		} else if others.add(name) {
			ok = d.other(s, of, v, name)
		} else {
			d.s.faultAtPath(MoreThanOnce)
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
	for _, f := range s.Fields {
		if f.Required && f.JSON != "" && seen&f.Bit == 0 {
			d.s.pushMember(f.JSON)
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

// name reads the name of a member. An unescaped name is a part of Data.
func (d *decoder) name() (string, bool) {
	raw, escaped, ok := d.Literal()
	if escaped {
		raw = syntax.Unescape(raw)
	}
	return raw, ok
}

// jsonField returns the field of a name, and the index to try first for the next name. Members are
// usually in the order of the fields.
func jsonField(s *shape.Shape, name string, next int) (*shape.Field, int) {
	if name != "" { // "" is the name of fields that are not members
		for i := next; i < min(next+lookahead, len(s.Fields)); i++ {
			if s.Fields[i].JSON == name {
				return s.Fields[i], i + 1
			}
		}
	}
	return s.ByName[name], next
}

// other reads a member of a map, or an unknown member of a struct.
func (d *decoder) other(s *shape.Shape, of *shape.Field, v reflect.Value, name string) bool {
	if s.Kind == shape.Map && v.Len() <= of.MaxElems { // one more, for the rule to detect
		if !d.allocate(2, s.Elem.Type) { // one here and one in the map
			return false
		}
		elem := reflect.New(s.Elem.Type).Elem()
		ok := d.value(s.Elem, shape.Element, elem)
		if d.copies {
			name = strings.Clone(name)
		}
		v.SetMapIndex(reflect.ValueOf(name).Convert(s.Type.Key()), elem)
		return ok
	}
	if s.Kind == shape.Object && !d.b.ignores(d.s, name) {
		d.s.faultAtPath("is not a member")
	}
	return d.skip()
}
