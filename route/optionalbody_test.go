package route

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func bodyTaker[Req any](t *testing.T) (h http.Handler, required bool) {
	t.Helper()
	m := NewMux(Config{Codecs: map[string]codec{"application/x-single": single}})
	check(t, m.Add(New("POST", "/", func(_ context.Context, req Req) (Req, error) { return req, nil })))
	doc := must(m.OpenAPI(Info{}))
	var d struct {
		Paths map[string]map[string]struct{ RequestBody struct{ Required bool } }
	}
	check(t, json.Unmarshal(doc, &d))
	return m, d.Paths["/"]["post"].RequestBody.Required
}

// A body may be absent exactly where the document says so.
func TestABodyOfWhichNothingIsRequiredMayBeLeftOut(t *testing.T) {
	type inner struct {
		Name string `json:"name" validate:"required"`
	}
	type free struct {
		Page int    `json:"page" form:"page" xml:"page" validate:"min=1"`
		Sub  *inner `json:"sub"`
	}
	type asked struct {
		Page int    `json:"page"`
		Name string `json:"name" form:"name" validate:"required"`
	}
	type list struct {
		All []inner `body:"json" validate:"min=1"`
	}
	type askedList struct {
		All []inner `body:"json" validate:"required"`
	}
	type document struct {
		Doc free `body:"json"`
	}
	type askedDocument struct {
		Doc inner `body:"json"`
	}
	type text struct {
		Text string `body:"text" validate:"min=3"`
	}
	type askedText struct {
		Text string `body:"text" validate:"required"`
	}
	type upload struct {
		File Optional[Upload] `form:"file"`
	}
	for _, c := range []struct {
		name     string
		make     func(*testing.T) (http.Handler, bool)
		required bool
	}{
		{"free", bodyTaker[free], false}, {"asked", bodyTaker[asked], true}, {"list", bodyTaker[list], false}, {"asked list", bodyTaker[askedList], true},
		{"document", bodyTaker[document], false}, {"asked document", bodyTaker[askedDocument], true}, {"text", bodyTaker[text], false}, {"asked text", bodyTaker[askedText], true},
		{"upload", bodyTaker[upload], false},
	} {
		h, required := c.make(t)
		if required != c.required {
			t.Errorf("%s: the document says required: %t", c.name, required)
		}
		send := func(body string, length int64) *httptest.ResponseRecorder {
			w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/", nil)
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), length
			h.ServeHTTP(w, r)
			return w
		}
		for _, length := range []int64{0, -1} { // a body of unknown length may be empty too
			if w := send("", length); (w.Code == 200) == c.required || w.Code >= 500 {
				t.Errorf("%s, length %d: %d %s", c.name, length, w.Code, w.Body)
			}
		}
		for _, length := range []int64{2, -1} { // a body with content needs a Content-Type
			if w := send("{}", length); w.Code != 400 || !strings.Contains(w.Body.String(), "missing-content-type") {
				t.Errorf("%s, %d bytes: %d %s", c.name, length, w.Code, w.Body)
			}
		}
		// A body with a Content-Type is of that type.
		if w := do(h, "POST", "/", "application/json", ""); w.Code == 200 {
			t.Errorf("%s: an empty text is taken for JSON: %d %s", c.name, w.Code, w.Body)
		}
	}
}
