package objectpool

import (
	"reflect"
	"sync"
	"unsafe"
)

// checked is true in builds that find misuse. In other builds the compiler removes the checks.
const checked = raceEnabled || asanEnabled

// samples are two new objects. Memory that an object shares with a sample is not the object's own.
// A field in which the samples differ is not compared with the field of a cleared object.
type samples[T any] struct {
	once sync.Once
	a, b *T
}

func (p *Pool[T]) newSamples() (a, b *T) {
	p.samples.once.Do(func() { p.samples.a, p.samples.b = p.make(), p.make() })
	return p.samples.a, p.samples.b
}

// owned calls f with all the memory that t alone owns: the memory behind its slices up to their
// capacity, and t itself.
func (p *Pool[T]) owned(t *T, f func(at unsafe.Pointer, elem reflect.Type, n int)) {
	a, b := p.newSamples()
	for _, s := range p.memory.slices {
		own := s.header(unsafe.Pointer(t))
		at := unsafe.SliceData(own)
		shared := at == unsafe.SliceData(s.header(unsafe.Pointer(a))) || at == unsafe.SliceData(s.header(unsafe.Pointer(b)))
		if cap(own) > 0 && !shared {
			f(unsafe.Pointer(at), s.elem, cap(own))
		}
	}
	f(unsafe.Pointer(t), reflect.TypeFor[T](), 1) // last: the slices are found through t
}

// overwrite writes memory with its own contents. Copying by reflection reports every byte to the
// race detector; the builtin clear does not.
func overwrite(at unsafe.Pointer, elem reflect.Type, n int) {
	s := reflect.SliceAt(elem, at, n)
	reflect.Copy(s, s)
}

func bury(at unsafe.Pointer, elem reflect.Type, n int)   { poison(at, uintptr(n)*elem.Size()) }
func unbury(at unsafe.Pointer, elem reflect.Type, n int) { unpoison(at, uintptr(n)*elem.Size()) }

// mustBeCleared panics if the cleared t differs from a new object.
func (p *Pool[T]) mustBeCleared(t *T) {
	a, b := p.newSamples()
	at := func(t *T) reflect.Value { return reflect.ValueOf(t).Elem() }
	if field, ok := left(at(t), at(a), at(b), 0); ok {
		panic("objectpool: Clear left something in " + reflect.TypeFor[T]().String() + field +
			" that a new object does not have (if it is meant to stay, set Config.KeepsState)")
	}
}

// deepest is how many nested pointers are followed.
const deepest = 4

// left finds a field in which v holds data that the new objects a and b do not hold. Memory kept
// for reuse does not count: capacity, empty maps, and pointers to cleared memory.
func left(v, a, b reflect.Value, depth int) (field string, found bool) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if field, found := left(v.Field(i), a.Field(i), b.Field(i), depth); found {
				return "." + v.Type().Field(i).Name + field, true
			}
		}
		return "", false
	case reflect.Array:
		for i := range min(v.Len(), longArray) {
			if field, found := left(v.Index(i), a.Index(i), b.Index(i), depth); found {
				return "[]" + field, true
			}
		}
		return "", false
	case reflect.Slice, reflect.Map:
		return "", a.Len() == b.Len() && v.Len() != a.Len()
	case reflect.Pointer:
		if v.IsNil() || a.IsNil() || b.IsNil() || depth == deepest || v.Pointer() == a.Pointer() || v.Pointer() == b.Pointer() {
			break
		}
		return left(v.Elem(), a.Elem(), b.Elem(), depth+1)
	case reflect.Interface, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return "", a.IsNil() && b.IsNil() && !v.IsNil()
	default:
		return "", a.Equal(b) && !v.Equal(a)
	}
	return "", a.IsNil() && b.IsNil() && !blank(v, depth)
}

// blank reports whether v is zero, apart from memory kept for reuse.
func blank(v reflect.Value, depth int) bool {
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			if !blank(field, depth) {
				return false
			}
		}
		return true
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || depth < deepest && blank(v.Elem(), depth+1)
	}
	return v.IsZero()
}
