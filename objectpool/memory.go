package objectpool

import (
	"reflect"
	"unsafe"
)

// memory describes where a T keeps its memory: in itself, and behind slices in its fields, nested
// fields and short arrays. Pointers and maps are not followed: their memory may belong to others.
type memory[T any] struct {
	self   uintptr
	slices []part
}

// part is a slice in a T.
type part struct {
	at   uintptr      // offset in the T
	elem reflect.Type // type of an element
	size uintptr      // size of an element
}

// longArray is the length from which an array is not searched for slices.
const longArray = 64

func memoryOf[T any]() memory[T] {
	t := reflect.TypeFor[T]()
	m := memory[T]{self: t.Size()}
	m.add(t, 0)
	return m
}

func (m *memory[T]) add(t reflect.Type, at uintptr) {
	switch t.Kind() {
	case reflect.Slice:
		if size := t.Elem().Size(); size > 0 {
			m.slices = append(m.slices, part{at, t.Elem(), size})
		}
	case reflect.Struct:
		for field := range t.Fields() {
			m.add(field.Type, at+field.Offset)
		}
	case reflect.Array:
		if t.Len() < longArray {
			for i := range t.Len() {
				m.add(t.Elem(), at+uintptr(i)*t.Elem().Size())
			}
		}
	}
}

// header returns the slice s of t, whatever its elements are: only the address and capacity of the
// slice may be used.
func (s part) header(t unsafe.Pointer) []struct{} {
	return *(*[]struct{})(unsafe.Add(t, s.at))
}

// sizer returns a function that counts the bytes of a T. It returns nil if every T has the same size.
func (m *memory[T]) sizer() func(*T) int {
	switch len(m.slices) {
	case 0:
		return nil
	case 1: // the usual case, without a loop
		self, s := int(m.self), m.slices[0]
		return func(t *T) int { return self + cap(s.header(unsafe.Pointer(t)))*int(s.size) }
	}
	return func(t *T) int {
		n := int(m.self)
		for _, s := range m.slices {
			n += cap(s.header(unsafe.Pointer(t))) * int(s.size)
		}
		return n
	}
}

// flat reports whether a t holds no pointers.
func flat(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		for field := range t.Fields() {
			if !flat(field.Type) {
				return false
			}
		}
		return true
	case reflect.Array:
		return flat(t.Elem())
	}
	return t.Kind() > reflect.Invalid && t.Kind() <= reflect.Complex128
}
