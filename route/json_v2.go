//go:build goexperiment.jsonv2

package route

import (
	v1 "encoding/json"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"reflect"
)

// alwaysWalk: this decoder is strict enough for most bodies.
const alwaysWalk = false

// Values look as version 1 writes them, so that a build does not change an API;
// what is accepted is strict in both.
var (
	strict = json.JoinOptions(
		v1.DefaultOptionsV1(),
		json.MatchCaseInsensitiveNames(false),
		jsontext.AllowDuplicateNames(false),
		jsontext.AllowInvalidUTF8(false),
		v1.ReportErrorsWithLegacySemantics(false),
		v1.MergeWithLegacySemantics(false),
		v1.ParseBytesWithLooseRFC4648(false),
		v1.ParseTimeWithLooseRFC3339(false),
	)
	// Slices, because a list of arguments would be allocated for each call.
	refusing = []json.Options{json.JoinOptions(strict, json.RejectUnknownMembers(true))}
	lenient  = []json.Options{strict}
	writing  = []json.Options{json.JoinOptions(strict, json.Deterministic(true))}
)

// decodeJSON decodes all of data.
func decodeJSON(data []byte, v any, refuseUnknown bool) error {
	if refuseUnknown {
		return json.Unmarshal(data, v, refusing...)
	}
	return json.Unmarshal(data, v, lenient...)
}

// encoder keeps what encoding needs from one response to the next: nothing.
type encoder struct{}

// encode appends the JSON of v, which is a pointer, to s.out.
func (s *scratch) encode(v any) error { return json.MarshalWrite(&s.out, v, writing...) }

// streamsIn and streamsOut report whether a type has methods that only this
// version of encoding/json calls.
func streamsIn(t reflect.Type) bool  { return t.Implements(reflect.TypeFor[json.UnmarshalerFrom]()) }
func streamsOut(t reflect.Type) bool { return t.Implements(reflect.TypeFor[json.MarshalerTo]()) }

// UnmarshalJSONFrom is UnmarshalJSON without a copy.
func (o *Optional[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	o.Set = true
	return json.UnmarshalDecode(d, &o.Value)
}
