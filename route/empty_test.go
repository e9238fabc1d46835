package route

import (
	"context"
	"fmt"
	"testing"
)

// Clients iterate over lists without a check for null, so a list or map is null only behind a nil
// pointer. The OpenAPI document once described each slice as one that may be null.
func TestASliceOrMapOfAnAnswerIsNeverNull(t *testing.T) {
	type part struct {
		Lists [][]int `json:"lists"`
	}
	type out struct {
		List  []string          `json:"list"`
		Map   map[string][]int  `json:"map"`
		Bytes []byte            `json:"bytes"`
		Opt   Optional[[]int]   `json:"opt,omitzero"`
		Parts map[string]part   `json:"parts"`
		Any   map[string]any    `json:"any"`
		Null  *[]int            `json:"null"`
		Gone  map[string]string `json:"gone,omitempty"`
	}
	type odd struct {
		Odd struct {
			List []string `json:"list"`
		} `json:"o d"`
	}
	get := New("GET", "/out", func(context.Context, Empty) (out, error) {
		return out{Map: map[string][]int{"b": nil, "a": {1}}, Opt: some[[]int](nil), Parts: map[string]part{"p": {[][]int{nil}}}}, nil
	})
	oddly := New("GET", "/odd", func(context.Context, Empty) (odd, error) { return odd{}, nil })
	nothing := New("GET", "/list", func(context.Context, Empty) ([]out, error) { return nil, nil })
	m := NewMux(Config{})
	check(t, m.Add(get, oddly, nothing))
	for path, want := range map[string]string{
		"/out":  `{"list":[],"map":{"a":[1],"b":[]},"bytes":"","opt":[],"parts":{"p":{"lists":[[]]}},"any":{},"null":null}`,
		"/odd":  `{"o d":{"list":null}}`,
		"/list": `[]`,
	} {
		if w := do(m, "GET", path, "", ""); w.Body.String() != want {
			t.Errorf("%s: %d\n got %s\nwant %s", path, w.Code, w.Body, want)
		}
	}
	doc := documentOf(t, get, oddly, nothing)
	schemas := inside(doc, "components", "schemas")
	properties := inside(schemas, "Out", "properties")
	for name, want := range map[string]string{"list": "array", "map": "object", "bytes": "string", "opt": "array", "parts": "object", "any": "object", "gone": "object", "null": "[array null]"} {
		if got := fmt.Sprint(inside(properties, name, "type")); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := fmt.Sprint(inside(schemas, "Odd", "properties", "o d", "properties", "list", "type")); got != "[array null]" {
		t.Errorf("left to the library: %s", got)
	}
	if got := inside(doc, "paths", "/list", "get", "responses", "200", "content", "application/json", "schema", "type"); got != "array" {
		t.Errorf("/list: %v", got)
	}
}
