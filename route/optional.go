package route

import (
	"encoding/json"
	"reflect"

	"github.com/spillway-go/spillway/route/internal/shape"
	"github.com/spillway-go/spillway/route/internal/stdjson"
)

// Optional tells absent from zero. Rules of the validate tag apply to a value that was sent. JSON
// null is a fault, unless T is a pointer, slice, map or any: Optional[*T] tells absent, null and a
// value apart. In a response use the omitzero option: the zero Optional is absent.
type Optional[T any] struct {
	Value T
	Set   bool
}

// UnmarshalJSON is called only for a member that is present: by clients and codecs.
func (o *Optional[T]) UnmarshalJSON(data []byte) error {
	o.Set = true
	return stdjson.Unmarshal(data, &o.Value)
}

// MarshalJSON writes the value, or null.
func (o Optional[T]) MarshalJSON() ([]byte, error) {
	if !o.Set {
		return []byte("null"), nil
	}
	return json.Marshal(&o.Value) // a pointer, so that methods with pointer receivers are found
}

// optional marks the type for reflection: its first field is the value, its second field tells
// whether the value is set.
func (Optional[T]) optional() {}

type optional interface{ optional() }

// isOptional tells an Optional from a struct that embeds an Optional.
func isOptional(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.Implements(reflect.TypeFor[optional]()) && t.NumField() == 2 && !t.Field(0).Anonymous && t.Field(1).Name == "Set"
}

// ownTypes are the types of this package that requests and responses may contain.
var ownTypes = shape.Types{Upload: reflect.TypeFor[Upload](), Optional: isOptional}
