//go:build goexperiment.jsonv2

package route

import (
	"bytes"
	v1 "encoding/json"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"reflect"
)

// Values are written as by version 1, so that the build does not change the API. The options are
// slices, because a list of arguments would be allocated for each call.
var (
	reading = []json.Options{json.JoinOptions(v1.DefaultOptionsV1(), jsontext.AllowDuplicateNames(false))}
	writing = []json.Options{json.JoinOptions(v1.DefaultOptionsV1(), v1.ReportErrorsWithLegacySemantics(false))}
)

// decodeJSON decodes all of data.
func decodeJSON(data []byte, v any) error { return json.Unmarshal(data, v, reading...) }

// noCharacter replaces text that is not UTF-8.
const noCharacter = "\uFFFD"

// encoder keeps encoding state from one response to the next; version 2 has none.
type encoder struct{}

func newEncoder(*bytes.Buffer) encoder { return encoder{} }

// encodeJSON encodes v, which is a pointer.
func encodeJSON(v any) ([]byte, error) { return json.Marshal(v, writing...) }

// encode appends the JSON of v, which is a pointer, to out, the buffer that the encoder was made for.
func (encoder) encode(out *bytes.Buffer, v any) error { return json.MarshalWrite(out, v, writing...) }

// streamsIn and streamsOut report whether a type has methods that only this
// version of encoding/json calls.
func streamsIn(t reflect.Type) bool  { return t.Implements(reflect.TypeFor[json.UnmarshalerFrom]()) }
func streamsOut(t reflect.Type) bool { return t.Implements(reflect.TypeFor[json.MarshalerTo]()) }
