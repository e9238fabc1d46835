//go:build !goexperiment.jsonv2

package route

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// decodeJSON decodes all of data.
func decodeJSON(data []byte, v any) error { return json.Unmarshal(data, v) }

// noCharacter replaces text that is not UTF-8.
const noCharacter = `\ufffd`

// encoder keeps encoding state from one response to the next.
type encoder struct{ json *json.Encoder }

func newEncoder(out *bytes.Buffer) encoder { return encoder{json.NewEncoder(out)} }

// encodeJSON encodes v, which is a pointer.
func encodeJSON(v any) ([]byte, error) { return json.Marshal(v) }

// encode appends the JSON of v, which is a pointer, to out, the buffer that e was made for.
func (e encoder) encode(out *bytes.Buffer, v any) error {
	if err := e.json.Encode(v); err != nil {
		return err
	}
	out.Truncate(out.Len() - 1) // the newline
	return nil
}

// streamsIn and streamsOut report whether a type has methods that only version
// 2 of encoding/json calls.
func streamsIn(reflect.Type) bool  { return false }
func streamsOut(reflect.Type) bool { return false }
