package route

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
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
	m := NewMux(Config{Codecs: []Codec{lineCodec{}}})
	err := m.Add(
		New("POST", "/x/{id}", func(context.Context, everything) (listed, error) { return listed{}, nil }).
			Name("everything").Describe("Takes a field of every source.").Tags("all").Status(201).Fails(404, 409),
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
	)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestDocumentIsTheSameEveryTimeAndAsReviewed(t *testing.T) {
	info := Info{Title: "Test", Version: "1", Description: "Everything once.", Servers: []string{"https://example.org"}}
	doc, err := documented(t).OpenAPI(info)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := documented(t).OpenAPI(info); !bytes.Equal(doc, again) {
		t.Error("the second document differs")
	}
	const golden = "testdata/openapi.json"
	if *update {
		if err := os.WriteFile(golden, doc, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(doc, want) {
		t.Errorf("differs from %s: look at it, then go test ./route -run Document -update\n%s", golden, doc)
	}
}

// A reference that leads nowhere is the usual fault of generated documents.
func TestEveryReferenceOfTheDocumentLeadsSomewhere(t *testing.T) {
	doc, err := documented(t).OpenAPI(Info{Title: "Test", Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	var root any
	if err := json.Unmarshal(doc, &root); err != nil {
		t.Fatal(err)
	}
	references := 0
	var visit func(any)
	visit = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, each := range v {
				visit(each)
			}
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				references++
				at := root
				for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
					at = at.(map[string]any)[name]
				}
				if at == nil {
					t.Errorf("%s leads nowhere", ref)
				}
			}
			for _, each := range v {
				visit(each)
			}
		}
	}
	visit(root)
	if references < 5 {
		t.Errorf("only %d references", references)
	}
}

func TestTheDocumentIsServed(t *testing.T) {
	m := documented(t)
	if err := m.Document("GET /openapi.json", Info{Title: "Test", Version: "1"}); err != nil {
		t.Fatal(err)
	}
	if w := do(m, "GET", "/openapi.json", "", ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"openapi": "3.1.0"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestNamesAreUnique(t *testing.T) {
	ok := func(context.Context, Empty) (Empty, error) { return Empty{}, nil }
	err := NewMux(Config{}).Add(New("GET", "/a", ok).Name("a"), New("GET", "/b", ok).Name("a"))
	if err == nil || !strings.Contains(err.Error(), "another route is called a") {
		t.Error(err)
	}
}
