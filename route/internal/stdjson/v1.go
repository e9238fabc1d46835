//go:build !goexperiment.jsonv2

package stdjson

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// Unmarshal decodes all of data.
func Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

// InvalidUTF8 replaces text that is not UTF-8.
const InvalidUTF8 = `\ufffd`

// Encoder keeps encoding state from one response to the next.
type Encoder struct{ json *json.Encoder }

// NewEncoder returns an Encoder for one buffer.
func NewEncoder(out *bytes.Buffer) Encoder { return Encoder{json.NewEncoder(out)} }

// Marshal encodes v, which is a pointer.
func Marshal(v any) ([]byte, error) { return json.Marshal(v) }

// Encode appends the JSON of v, which is a pointer, to out, the buffer that e was made for.
func (e Encoder) Encode(out *bytes.Buffer, v any) error {
	if err := e.json.Encode(v); err != nil {
		return err
	}
	out.Truncate(out.Len() - 1) // the newline
	return nil
}

// readsItself and writesItself report whether a type has methods that only version
// 2 of encoding/json calls.
func readsItself(reflect.Type) bool  { return false }
func writesItself(reflect.Type) bool { return false }
