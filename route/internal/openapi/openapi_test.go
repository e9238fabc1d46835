package openapi

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/route/internal/shape"
)

type (
	list  []list
	table map[string]table
	node  struct {
		Nodes nodes `json:"nodes"`
	}
	nodes []node
)

func known() shape.Types {
	return shape.Types{Optional: func(reflect.Type) bool { return false }}
}

func TestOperationsHavePathsOfTheirOwn(t *testing.T) {
	type at struct{ method, pattern string }
	plan, err := shape.Compile(reflect.TypeFor[struct{}](), "/", known())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		routes []at
		want   string // of the document, or else of the error
		fails  bool
	}{
		{[]at{{"GET", "example.org/files/{path...}"}}, `"/files/{path}":{`, false},
		{[]at{{"GET", "/a/{$}"}, {"POST", "/a/"}}, `"/a/":{`, false},
		{[]at{{"", "/a"}, {"CONNECT", "/a"}}, `"paths":{}`, false},
		{[]at{{"GET", "/{a}"}, {"PUT", "/{b}"}}, "/{a} and /{b} are one path", true},
		{[]at{{"GET", "x/a"}, {"GET", "y/a"}}, "GET /a would be described twice", true},
	} {
		var operations []Operation
		for _, r := range c.routes {
			operations = append(operations, Operation{Method: r.method, Pattern: r.pattern, Plan: plan, Status: 204})
		}
		doc, err := Marshal(Info{}, operations)
		if text := string(doc); (err != nil) != c.fails || c.fails && !strings.Contains(err.Error(), c.want) || !c.fails && !strings.Contains(text, c.want) {
			t.Errorf("%v: %s, %v", c.routes, text, err)
		}
	}
}

// A list or a map of itself once overflowed the stack.
func TestARecursiveTypeHasASchema(t *testing.T) {
	component := `{"properties":{"nodes":{"items":{"$ref":"#/components/schemas/Node"},"type":"array"}},"required":["nodes"],"type":"object"}`
	for _, c := range []struct {
		typ             reflect.Type
		want, component string
	}{
		{reflect.TypeFor[list](), `{"items":{},"type":"array"}`, ""},
		{reflect.TypeFor[table](), `{"additionalProperties":{},"type":"object"}`, ""},
		{reflect.TypeFor[[]list](), `{"items":{"items":{},"type":"array"},"type":"array"}`, ""},
		{reflect.TypeFor[node](), `{"$ref":"#/components/schemas/Node"}`, component},
		{reflect.TypeFor[nodes](), `{"items":{"$ref":"#/components/schemas/Node"},"type":"array"}`, component},
	} {
		s, _ := shape.OfResponse(c.typ, known())
		d := newSchemas()
		if got := text(t, d.of(s, true)); got != c.want {
			t.Errorf("%s: %s, not %s", c.typ, got, c.want)
		}
		if c.component != "" && text(t, d.named["Node"]) != c.component {
			t.Errorf("%s: %s", c.typ, text(t, d.named["Node"]))
		}
	}
}

func text(t *testing.T, v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
