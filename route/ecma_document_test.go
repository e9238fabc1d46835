package route

import (
	"context"
	"strings"
	"testing"
)

func TestAPatternThatTheDocumentCannotSayIsLeftOut(t *testing.T) {
	type in struct {
		A string   `query:"a" validate:"pattern=(?i)^a$"`
		B []string `json:"b" validate:"pattern=\\A[[:alpha:]]+\\z"`
	}
	s := serving(t, func(f func(context.Context, in) (Empty, error)) *Route { return New("POST", "/", f) }, Config{})
	doc, err := s.Handler.(*Mux).OpenAPI(Info{})
	if err != nil || strings.Count(string(doc), `"pattern"`) != 1 || !strings.Contains(string(doc), `"pattern":"^[A-Za-z]+$"`) {
		t.Errorf("%v\n%s", err, doc)
	}
	for query, code := range map[string]int{"a": 204, "A": 204, "b": 400} {
		if w := do(s, "POST", "/?a="+query, "application/json", `{"b":["x"]}`); w.Code != code {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
}
