package stdjson

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

type reads struct{}

func (*reads) UnmarshalJSON([]byte) error { return nil }

type writes struct{}

func (writes) MarshalText() ([]byte, error) { return nil, nil }

func TestTypesWithMethodsOfTheirOwn(t *testing.T) {
	for _, c := range []struct {
		pointer            reflect.Type
		unmarshal, marshal bool
	}{
		{reflect.TypeFor[*int](), false, false}, {reflect.TypeFor[*string](), false, false}, {reflect.TypeFor[*time.Time](), true, true},
		{reflect.TypeFor[*json.RawMessage](), true, true}, {reflect.TypeFor[*reads](), true, false}, {reflect.TypeFor[*writes](), false, true},
	} {
		if Unmarshals(c.pointer) != c.unmarshal || Marshals(c.pointer) != c.marshal {
			t.Errorf("%s: %t, %t", c.pointer, Unmarshals(c.pointer), Marshals(c.pointer))
		}
	}
}

func TestTheBuildDoesNotChangeTheJSON(t *testing.T) {
	var out bytes.Buffer
	e := NewEncoder(&out)
	for _, c := range []struct {
		value any
		want  string
	}{
		{new([]int), `null`}, {&map[string]any{"b": 1, "a": "<&>"}, `{"a":"\u003c\u0026\u003e","b":1}`}, {&[]byte{1}, `"AQ=="`}, {new(writes), `""`},
		{new(time.Second), `1000000000`}, {new("\xff"), `"` + InvalidUTF8 + `"`},
	} {
		out.Reset()
		err := e.Encode(&out, c.value)
		marshaled, other := Marshal(c.value)
		if err != nil || other != nil || out.String() != c.want || string(marshaled) != c.want {
			t.Errorf("%s and %s, not %s; %v, %v", out.Bytes(), marshaled, c.want, err, other)
		}
	}
	for text, ok := range map[string]bool{`{"A":1}`: true, ` {"a":1} `: true, `{"A":1}x`: false, `{"A":"1"}`: false, ``: false} {
		var v struct{ A int }
		if err := Unmarshal([]byte(text), &v); (err == nil) != ok || ok && v.A != 1 {
			t.Errorf("%s: %v, %v", text, v, err)
		}
	}
}
