package route

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/spillway-go/spillway"
)

var update = flag.Bool("update", false, "write the golden files anew")

func documented(t testing.TB) *Mux {
	t.Helper()
	type listed struct {
		Addresses []address         `json:"addresses"`
		Counts    map[string]uint32 `json:"counts"`
		Note      *string           `json:"note,omitempty"`
		Next      *address          `json:"next"`
	}
	m := NewMux(Config{Codecs: lines})
	check(t, m.Add(
		New("POST", "/x/{id}", func(context.Context, everything) (listed, error) { return listed{}, nil }).
			Name("everything").Describe("Takes a field of every source.").Tags("all").Status(201).Answers(404, Answer{}).Answers(409, Answer{}),
		New("GET", "/files/{path...}", func(context.Context, struct {
			Path string `path:"path" doc:"below the root"`
		}) (File, error) {
			return File{}, nil
		}).Name("file"),
		New("PUT", "/addresses", func(context.Context, struct {
			All []address `body:"json" validate:"min=1"`
		}) (Empty, error) {
			return Empty{}, nil
		}).Name("addresses"),
		New("", "/any", func(context.Context, Empty) (Empty, error) { return Empty{}, nil }),
	))
	return m
}

func TestDocumentIsTheSameEveryTimeAndAsReviewed(t *testing.T) {
	info := Info{Title: "Test", Version: "1", Description: "Everything once.", Edit: func(doc map[string]any) {
		doc["servers"] = []any{map[string]any{"url": "https://example.org"}}
	}}
	doc := must(documented(t).OpenAPI(info))
	if again, _ := documented(t).OpenAPI(info); !bytes.Equal(doc, again) {
		t.Error("the second document differs")
	}
	if bytes.IndexByte(doc, '\n') != len(doc)-1 {
		t.Error("the document is not one line")
	}
	var indented bytes.Buffer // for its readers
	check(t, json.Indent(&indented, doc, "", "  "))
	doc = indented.Bytes()
	const golden = "testdata/openapi.json"
	if *update {
		check(t, os.WriteFile(golden, doc, 0o644))
	}
	want := must(os.ReadFile(golden))
	if !bytes.Equal(doc, want) {
		t.Errorf("differs from %s: look at it, then go test ./route -run Document -update\n%s", golden, doc)
	}
}

func responsesOf(t *testing.T, cfg Config, r *Route) map[string]any {
	t.Helper()
	m := NewMux(cfg)
	check(t, m.Add(r))
	doc := must(m.OpenAPI(Info{}))
	var d struct {
		Paths      map[string]map[string]map[string]any
		Components struct{ Schemas map[string]any }
	}
	check(t, json.Unmarshal(doc, &d))
	responses := d.Paths["/"]["post"]["responses"].(map[string]any)
	for status, response := range responses { // with its schema in place
		if schema, ok := d.Components.Schemas["Problem"+status]; ok {
			response.(map[string]any)["content"] = schema
		}
	}
	return responses
}

func TestErrorsAreDocumentedAsTheyAreMapped(t *testing.T) {
	type in struct {
		A int `json:"a"`
	}
	gone := errors.New("gone")
	cfg := Config{ProblemBase: "urn:x:", Errors: Errors{Is(gone, Problem{Status: 410, Type: "gone", Detail: "it was here"})}}
	post := func() *Route {
		return New("POST", "/", func(context.Context, in) (Empty, error) { return Empty{}, nil })
	}
	if got := responsesOf(t, cfg, post()); got["410"] != nil || got["default"] == nil {
		t.Errorf("without a list: %v", got)
	}
	got := responsesOf(t, cfg, post().FailsWith(gone, &spillway.Rejection{}, context.Canceled).Answers(409, Answer{}))
	text, _ := json.Marshal(got["410"])
	if got["default"] != nil || !strings.Contains(string(text), `"enum":["urn:x:gone"]`) || !strings.Contains(string(text), "it was here") {
		t.Errorf("%s", text)
	}
	if text, _ := json.Marshal(got["503"]); !strings.Contains(string(text), "Retry-After") || !strings.Contains(string(text), overloaded) {
		t.Errorf("%s", text)
	}
	if text, _ := json.Marshal(got["409"]); strings.Contains(string(text), "enum") {
		t.Errorf("a status of which no more is known: %s", text)
	}
	if text, _ := json.Marshal(got["400"]); !strings.Contains(string(text), `"enum":["urn:x:invalid-request","urn:x:missing-content-type","urn:x:incomplete-body"]`) {
		t.Errorf("%s", text)
	}
	if got := responsesOf(t, Config{Errors: Errors{Is(gone, Problem{})}}, post().FailsWith(gone)); got["0"] != nil || got["500"] == nil {
		t.Errorf("a problem without a status: %v", got)
	}
	if got["499"] != nil {
		t.Error("what nobody is sent is documented")
	}
}

func TestSchemasAreOpenWhereUnknownMembersAreAllowed(t *testing.T) {
	type in struct {
		Home address `json:"home"`
	}
	ok := func(context.Context, in) (Empty, error) { return Empty{}, nil }
	for lax, closed := range map[bool]int{false: 2, true: 0} {
		m, r := NewMux(Config{}), New("POST", "/", ok)
		if lax {
			r.AllowUnknown()
		}
		check(t, m.Add(r))
		doc, err := m.OpenAPI(Info{})
		if n := strings.Count(string(doc), `"additionalProperties":false`); err != nil || n != closed {
			t.Errorf("unknown members allowed: %v, closed schemas: %d, %v", lax, n, err)
		}
		if w := do(m, "POST", "/", "application/json", `{"home":{"city":"a","x":1},"y":1}`); (w.Code == 204) != lax {
			t.Errorf("unknown members allowed: %v: %d %s", lax, w.Code, w.Body)
		}
	}
}
