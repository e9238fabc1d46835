package route

import "reflect"

// array reads the elements of a list, whose bracket has been read.
func (d *decoder) array(s *shape, v reflect.Value) bool {
	if d.take(']') {
		d.depth--
		v.Set(reflect.MakeSlice(s.typ, 0, 0))
		return true
	}
	for i := 0; ; i++ {
		if i == v.Cap() {
			v.Grow(max(4, i))
		}
		v.SetLen(i + 1)
		d.s.element(i)
		if !d.value(s.elem, v.Index(i)) {
			return false
		}
		d.s.up()
		switch {
		case d.take(','):
		case d.take(']'):
			d.depth--
			return true
		default:
			return false
		}
	}
}

// object reads a struct or a map.
func (d *decoder) object(s *shape, v reflect.Value) bool {
	var seen uint64
	var names map[string]struct{} // that are no fields
	if s.kind == kindMap {
		v.Set(reflect.MakeMap(s.typ))
	}
	next := 0
	for more := !d.take('}'); more; {
		if d.next() != '"' {
			return false
		}
		name, ok := d.text()
		if !ok || !d.take(':') {
			return false
		}
		d.s.member(name)
		var f *field
		if f, next = s.member(name, next); f != nil {
			if seen&f.bit != 0 {
				d.s.here("is given more than once")
				ok = d.skip()
			} else {
				ok = d.field(f, f.of(v))
			}
			seen |= f.bit
		} else if _, twice := names[name]; twice {
			d.s.here("is given more than once")
			ok = d.skip()
		} else {
			if names == nil {
				names = map[string]struct{}{}
			}
			names[name] = struct{}{}
			ok = d.other(s, v, name)
		}
		if !ok {
			return false
		}
		d.s.up()
		if more = d.take(','); !more && !d.take('}') {
			return false
		}
	}
	d.depth--
	for _, f := range s.fields {
		if f.required && f.json != "" && seen&f.bit == 0 {
			d.s.member(f.json)
			d.s.here("is required")
			d.s.up()
		}
	}
	return true
}

// member returns the field of a name, which is probably the next, and which is
// probably the next one then.
func (s *shape) member(name string, next int) (*field, int) {
	if name != "" { // as is that of a field which is no member
		for i := next; i < min(next+ahead, len(s.fields)); i++ {
			if s.fields[i].json == name {
				return s.fields[i], i + 1
			}
		}
	}
	return s.byName[name], next
}

// other reads the member of a map, or one that a struct does not have.
func (d *decoder) other(s *shape, v reflect.Value, name string) bool {
	if s.kind == kindMap {
		elem := reflect.New(s.elem.typ).Elem()
		ok := d.value(s.elem, elem)
		v.SetMapIndex(reflect.ValueOf(name).Convert(s.typ.Key()), elem)
		return ok
	}
	if s.kind == kindObject && !d.lax {
		d.s.here("is not a member")
	}
	return d.skip()
}
