//go:build goexperiment.jsonv2

package route

import (
	"bytes"
	v1 "encoding/json"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"reflect"
)

// Values look as version 1 writes them, so that a build does not change an API.
// Slices, because a list of arguments would be allocated for each call.
var (
	reading = []json.Options{json.JoinOptions(v1.DefaultOptionsV1(), jsontext.AllowDuplicateNames(false))}
	writing = []json.Options{json.JoinOptions(v1.DefaultOptionsV1(), v1.ReportErrorsWithLegacySemantics(false))}
)

// decodeJSON decodes all of data.
func decodeJSON(data []byte, v any) error { return json.Unmarshal(data, v, reading...) }

// noCharacter is written for what is not UTF-8.
const noCharacter = "\uFFFD"

// encoder keeps what encoding needs from one response to the next: nothing.
type encoder struct{}

func newEncoder(*bytes.Buffer) encoder { return encoder{} }

// encodeJSON encodes v, which is a pointer.
func encodeJSON(v any) ([]byte, error) { return json.Marshal(v, writing...) }

// library appends the JSON of v, which is a pointer, to s.out.
func (s *scratch) library(v any) error { return json.MarshalWrite(&s.out, v, writing...) }

// streamsIn and streamsOut report whether a type has methods that only this
// version of encoding/json calls.
func streamsIn(t reflect.Type) bool  { return t.Implements(reflect.TypeFor[json.UnmarshalerFrom]()) }
func streamsOut(t reflect.Type) bool { return t.Implements(reflect.TypeFor[json.MarshalerTo]()) }
