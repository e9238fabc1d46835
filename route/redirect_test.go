package route

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

func TestAPatternForEverythingIsTheUsersOwn(t *testing.T) {
	type in struct {
		Path string `path:"path"`
	}
	for _, method := range []string{"", "GET"} {
		m := NewMux(Config{})
		if err := m.Add(New(method, "/{path...}", func(_ context.Context, req in) (string, error) { return req.Path, nil })); err != nil {
			t.Fatal(err)
		}
		if w := do(m, "GET", "/a/b", "", ""); w.Code != 200 || w.Body.String() != `"a/b"` {
			t.Errorf("%q: %d %s", method, w.Code, w.Body)
		}
		want := map[string]int{"": 200, "GET": 405}[method]
		if w := do(m, "POST", "/a", "", ""); w.Code != want {
			t.Errorf("%q: POST %d %s", method, w.Code, w.Body)
		}
	}
}

// ServeMux redirects with a page for people.
func TestRedirectsHaveNoPage(t *testing.T) {
	m := NewMux(Config{})
	type in struct {
		Path string `path:"path"`
	}
	text := func(context.Context, in) (string, error) { return "<p>", nil }
	if err := m.Add(New("GET", "/files/{path...}", text), New("GET", "/a/b", func(context.Context, Empty) (string, error) { return "<p>", nil })); err != nil {
		t.Fatal(err)
	}
	if err := m.Handle("GET /page/", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<p>"))
	})); err != nil {
		t.Fatal(err)
	}
	for path, to := range map[string]string{"/files": "/files/", "/page": "/page/", "/a//b": "/a/b", "/a/./b": "/a/b", "/x/../a/b": "/a/b"} {
		w := do(m, "GET", path, "", "")
		if w.Code != http.StatusTemporaryRedirect || w.Header().Get("Location") != to || w.Body.Len() > 0 || w.Header().Get("Content-Type") != "" {
			t.Errorf("%s: %d %v %q", path, w.Code, w.Header(), w.Body)
		}
	}
	for _, path := range []string{"/files/x", "/files/x/", "/files/", "/page/", "/page/x"} {
		if w := do(m, "GET", path, "", ""); w.Code != 200 || !strings.Contains(w.Body.String(), "p") || w.Header().Get("Content-Type") == "" {
			t.Errorf("%s: %d %v %q", path, w.Code, w.Header(), w.Body)
		}
	}
	if w := do(m, "GET", "/b//c", "", ""); w.Code != http.StatusTemporaryRedirect && w.Code != 404 || w.Body.Len() > 0 && w.Code != 404 {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}
