// Package stdjson is encoding/json, in version 1 or, where the build has it, version 2. Both
// versions behave as alike as they can.
package stdjson

import (
	"encoding"
	"encoding/json"
	"reflect"
)

// Unmarshals reports whether methods of a type read its JSON. pointer is the type of a pointer to
// the type.
func Unmarshals(pointer reflect.Type) bool {
	return implements[json.Unmarshaler](pointer) || implements[encoding.TextUnmarshaler](pointer) || readsItself(pointer)
}

// Marshals reports whether methods of a type write its JSON. pointer is the type of a pointer to
// the type.
func Marshals(pointer reflect.Type) bool {
	return implements[json.Marshaler](pointer) || implements[encoding.TextMarshaler](pointer) || writesItself(pointer)
}

func implements[I any](t reflect.Type) bool { return t.Implements(reflect.TypeFor[I]()) }
