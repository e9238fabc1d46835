package route

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// loaned has its method on the pointer, and is returned as a value.
type loaned struct {
	Name string `json:"name"`
	seen func(*loaned)
}

func (l *loaned) Close() error { l.seen(l); return nil }

// The methods of a pointer to the response were once not called, because the response's type does
// not have them. Close was then never called.
func TestMethodsOfThePointerToAResponseAreCalled(t *testing.T) {
	var seen []*loaned
	m := NewMux(Config{})
	check(t, m.Add(New("GET", "/", func(context.Context, Empty) (loaned, error) {
		return loaned{"Ada", func(l *loaned) { seen = append(seen, l) }}, nil
	})))
	for range 3 {
		if w := do(m, "GET", "/", "", ""); w.Code != 200 || w.Body.String() != `{"name":"Ada"}` {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if len(seen) != 3 {
		t.Fatalf("called %d times", len(seen))
	}
	for _, l := range seen {
		if l.Name != "Ada" {
			t.Error("a response that a method has kept was reused")
		}
	}
}

// selfish keeps the pointer that MarshalJSON is called with.
type selfish struct {
	keep func(*selfish)
	n    int
}

func (s *selfish) MarshalJSON() ([]byte, error) { s.keep(s); return []byte("1"), nil }

// The methods of types that are invalid in a request still get pointers to the response.
func TestResponseWhoseElementsAreKeptIsNotReused(t *testing.T) {
	var kept []*selfish
	one := func(n int) selfish { return selfish{func(s *selfish) { kept = append(kept, s) }, n} }
	type inArray struct{ A [1]selfish }
	type beside struct {
		*part
		S selfish
	}
	m := NewMux(Config{Untimed: true})
	check(t, m.Add(
		New("GET", "/array", func(context.Context, Empty) (inArray, error) { return inArray{[1]selfish{one(7)}}, nil }),
		New("GET", "/beside", func(context.Context, Empty) (beside, error) { return beside{S: one(7)}, nil }),
	))
	for _, path := range []string{"/array", "/beside"} {
		kept = nil
		for range 3 {
			if w := do(m, "GET", path, "", ""); w.Code != 200 {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
		}
		if len(kept) < 3 || slices.ContainsFunc(kept, func(s *selfish) bool { return s.n != 7 }) {
			t.Errorf("%s: a response that a method has kept was reused: %v", path, kept)
		}
	}
}

func TestFilesAndStreamsBehindAnInterfaceAreWhatTheyAre(t *testing.T) {
	for _, h := range []http.Handler{
		answering(t, Config{}, func() (any, error) { return File{Content: strings.NewReader("text")}, nil }),
		answering(t, Config{}, func() (any, error) { return &File{Content: strings.NewReader("text")}, nil }),
		answering(t, Config{}, func() (any, error) {
			return Stream{Write: func(w io.Writer) error { _, err := io.WriteString(w, "text"); return err }}, nil
		}),
	} {
		if w := do(h, "GET", "/", "", ""); w.Code != 200 || w.Body.String() != "text" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if w := do(answering(t, Config{}, func() (any, error) { return Empty{}, nil }), "GET", "/", "", ""); w.Code != 200 || w.Body.Len() > 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// The headers of a success that does not happen must not describe its problem.
func TestAProblemHasNoHeadersOfTheSuccess(t *testing.T) {
	broken := errors.New("broken")
	header := http.Header{"Content-Type": {"text/event-stream"}, "Location": {"/x"}, "Content-Encoding": {"br"}}
	for _, h := range []http.Handler{
		answering(t, Config{}, func() (Response[any], error) { return Response[any]{Header: header, Body: func() {}}, nil }),
		answering(t, Config{}, func() (Response[File], error) {
			return Response[File]{Code: 201, Header: header, Body: File{Name: "a", Content: unseekable{}}}, nil
		}),
		answering(t, Config{}, func() (Response[Stream], error) {
			return Response[Stream]{Header: header, Body: Stream{Write: func(io.Writer) error { return broken }}}, nil
		}),
	} {
		w := do(h, "GET", "/", "", "")
		if w.Code != 500 || w.Header().Get("Location")+w.Header().Get("Content-Encoding")+w.Header().Get("Content-Disposition") != "" || len(w.Header()["Server-Timing"]) != 1 {
			t.Errorf("%d %v", w.Code, w.Header())
		}
	}
	h := answering(t, Config{}, func() (Response[Stream], error) {
		return Response[Stream]{Header: header, Body: Stream{Write: func(io.Writer) error { return nil }}}, nil
	})
	if w := do(h, "GET", "/", "", ""); w.Header().Get("Content-Type") != "text/event-stream" {
		t.Error(w.Header())
	}
}

type unseekable struct{ io.Reader }

func (unseekable) Seek(int64, int) (int64, error) { return 0, errors.New("broken") }

func documentOf(t *testing.T, r ...*Route) map[string]any {
	t.Helper()
	doc, err := Describe(Config{}, Info{}, r...)
	var v map[string]any
	if err != nil || json.Unmarshal(doc, &v) != nil {
		t.Fatal(err)
	}
	return v
}

// inside looks up a value of a document.
func inside(v any, path ...string) any {
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

func TestTheDocumentSaysWhatIsSent(t *testing.T) {
	type out struct {
		Omitted Optional[int] `json:"omitted,omitzero"`
		Null    Optional[int] `json:"null"`
	}
	doc := documentOf(t,
		New("GET", "/out", func(context.Context, Empty) (out, error) { return out{}, nil }),
		New("PUT", "/gone", func(context.Context, Empty) (out, error) { return out{}, nil }).Status(204),
		New("PURGE", "/out", func(context.Context, Empty) (Empty, error) { return Empty{}, nil }),
		New("GET", "/{my-rest...}", func(context.Context, struct {
			Rest string `path:"my-rest"`
		}) (Empty, error) {
			return Empty{}, nil
		}),
	)
	properties := inside(doc, "components", "schemas", "Out", "properties")
	if types, ok := inside(properties, "null", "type").([]any); !ok || len(types) != 2 {
		t.Errorf("null is not told: %v", properties)
	}
	if inside(properties, "omitted", "type") != "integer" {
		t.Errorf("null is told: %v", properties)
	}
	if inside(doc, "paths", "/gone", "put", "responses", "204", "content") != nil {
		t.Error("204 has content")
	}
	if inside(doc, "paths", "/out", "purge") != nil || inside(doc, "paths", "/out", "get") == nil {
		t.Error("a method that OpenAPI does not know")
	}
	if inside(doc, "paths", "/{my-rest}") == nil {
		t.Errorf("%v", doc["paths"])
	}
}
