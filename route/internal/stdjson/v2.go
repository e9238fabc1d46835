//go:build goexperiment.jsonv2

package stdjson

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

// Unmarshal decodes all of data.
func Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v, reading...) }

// InvalidUTF8 replaces text that is not UTF-8.
const InvalidUTF8 = "\uFFFD"

// Encoder keeps encoding state from one response to the next; version 2 has none.
type Encoder struct{}

// NewEncoder returns an Encoder for one buffer.
func NewEncoder(*bytes.Buffer) Encoder { return Encoder{} }

// Marshal encodes v, which is a pointer.
func Marshal(v any) ([]byte, error) { return json.Marshal(v, writing...) }

// Encode appends the JSON of v, which is a pointer, to out, the buffer that the encoder was made
// for.
func (Encoder) Encode(out *bytes.Buffer, v any) error { return json.MarshalWrite(out, v, writing...) }

// readsItself and writesItself report whether a type has methods that only this
// version of encoding/json calls.
func readsItself(t reflect.Type) bool  { return t.Implements(reflect.TypeFor[json.UnmarshalerFrom]()) }
func writesItself(t reflect.Type) bool { return t.Implements(reflect.TypeFor[json.MarshalerTo]()) }
