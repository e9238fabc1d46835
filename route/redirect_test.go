package route

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"testing"
	"unicode"
)

func TestAPatternForEverythingIsTheUsersOwn(t *testing.T) {
	type in struct {
		Path string `path:"path"`
	}
	for _, method := range []string{"", "GET"} {
		m := NewMux(Config{})
		check(t, m.Add(New(method, "/{path...}", func(_ context.Context, req in) (string, error) { return req.Path, nil })))
		if w := do(m, "GET", "/a/b", "", ""); w.Code != 200 || w.Body.String() != `"a/b"` {
			t.Errorf("%q: %d %s", method, w.Code, w.Body)
		}
		want := map[string]int{"": 200, "GET": 405}[method]
		if w := do(m, "POST", "/a", "", ""); w.Code != want {
			t.Errorf("%q: POST %d %s", method, w.Code, w.Body)
		}
	}
}

// ServeMux would write an HTML page with a redirect.
func TestRedirectsHaveNoPage(t *testing.T) {
	m := NewMux(Config{})
	type in struct {
		Path string `path:"path"`
	}
	text := func(context.Context, in) (string, error) { return "<p>", nil }
	check(t, m.Add(New("GET", "/files/{path...}", text), New("GET", "/a/b", func(context.Context, Empty) (string, error) { return "<p>", nil })))
	check(t, m.Handle("GET /page/", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<p>"))
	})))
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

// A redirect leads to the same resource in another spelling. ServeMux escapes escapes again, and
// treats an escaped slash as a separator.
func TestARedirectKeepsTheEscapesOfAPath(t *testing.T) {
	var got []string
	keep := func(pattern string, names ...string) (string, http.Handler) {
		return pattern, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got = got[:0]
			for _, name := range names {
				got = append(got, r.PathValue(name))
			}
		})
	}
	m := NewMux(Config{})
	for _, add := range []func() error{
		func() error { return m.Handle(keep("/files/{name}", "name")) }, func() error { return m.Handle(keep("/dir/{name}/", "name")) },
		func() error { return m.Handle(keep("/tree/{rest...}", "rest")) }, func() error { return m.Handle(keep("/dir/{name}/sub/{$}", "name")) },
	} {
		check(t, add())
	}
	for _, c := range []struct{ path, to, value string }{
		{"//files/a%20b", "/files/a%20b", "a b"}, {"//files/a%2520b", "/files/a%2520b", "a%20b"}, {"//files/a%2Fb", "/files/a%2Fb", "a/b"}, {"/x/../files/%C3%A4%3F", "/files/%C3%A4%3F", "ä?"},
		{"/dir/a%2Fb", "/dir/a%2Fb/", "a/b"}, {"/dir//a%2F", "/dir/a%2F/", "a/"}, {"/dir/a%2F", "/dir/a%2F/", "a/"}, {"/dir/%2Fevil.example", "/dir/%2Fevil.example/", "/evil.example"}, {"/dir/a%2F/sub", "/dir/a%2F/sub/", "a/"},
		{"/tree//a%2F%2Fb/", "/tree/a%2F%2Fb/", "a//b/"}, {"/tree/./%25", "/tree/%25", "%"}, {"/tree/a/..", "/tree/", ""}, {"//files/a+b;c=d", "/files/a+b;c=d", "a+b;c=d"},
		{`/files//\evil.example`, "/files/%5Cevil.example", `\evil.example`}, {"/files//%23?a=%2F&b=//c", "/files/%23?a=%2F&b=//c", "#"}, {"/files//a?b#c", "/files/a?b%23c", "a"}, {"/dir/a?b=/c/", "/dir/a/?b=/c/", "a"},
	} {
		for _, method := range []string{"GET", "POST"} {
			ask := func(target string) *httptest.ResponseRecorder {
				u := must(url.ParseRequestURI(target)) // as a server reads it
				r := httptest.NewRequest(method, "/", nil)
				r.URL = u
				w := httptest.NewRecorder()
				m.ServeHTTP(w, r)
				return w
			}
			w := ask(c.path)
			if w.Code != http.StatusTemporaryRedirect || w.Header().Get("Location") != c.to || w.Body.Len() > 0 {
				t.Errorf("%s %s: %d %v %q, want %s", method, c.path, w.Code, w.Header(), w.Body, c.to)
				continue
			}
			to := w.Header().Get("Location")
			for range 2 { // the first target may lack a slash at the end
				if w = ask(to); w.Code == http.StatusTemporaryRedirect {
					to = w.Header().Get("Location")
				}
			}
			if w.Code != 200 || got[0] != c.value {
				t.Errorf("%s %s: %d of %q, want that of %q", method, to, w.Code, got, c.value)
			}
		}
	}
}

// A chain of redirects ends, at the resource of the original path.
func FuzzRedirects(f *testing.F) {
	for _, seed := range []string{"/a", "//a//b", "/a/%2f/", "/%2F%2Fevil.example", "/a/..", "/a%2e/../b?x=/..", `/\a//`, "/%25%32%30//", "/ä/./b", "/a/%2e%2e/b//", "/?//", "/:80//"} {
		f.Add(seed)
	}
	f.Add("/a/%2f")
	m := NewMux(Config{})
	var got []string
	for _, pattern := range []string{"/{a}/{$}", "/{a}/{b}/"} {
		check(f, m.Handle(pattern, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = []string{r.PathValue("a"), r.PathValue("b")} })))
	}
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || !strings.HasPrefix(target, "/") {
			return
		}
		first := u
		for n := 0; ; n++ {
			r := httptest.NewRequest("GET", "/", nil)
			r.URL = u
			got = nil
			w := httptest.NewRecorder()
			m.ServeHTTP(w, r)
			if w.Code != http.StatusTemporaryRedirect {
				break
			}
			if n == 3 {
				t.Fatalf("%q is redirected to %q, and so on", target, w.Header().Get("Location"))
			}
			if u, err = url.Parse(w.Header().Get("Location")); err != nil || u.Host != "" || u.Scheme != "" || u.Fragment != "" {
				t.Fatalf("%q is redirected to %q: %v", target, w.Header().Get("Location"), err)
			}
		}
		if u.RawQuery != strings.ReplaceAll(first.RawQuery, "#", "%23") && strings.IndexFunc(first.RawQuery, func(c rune) bool { return c > unicode.MaxASCII }) < 0 {
			t.Errorf("%q: %q became %q", target, first.RawQuery, u.RawQuery)
		}
		segments := strings.Split(strings.Trim(path.Clean(first.EscapedPath()), "/"), "/")
		for i := range min(2, len(segments), len(got)) {
			if want, _ := url.PathUnescape(segments[i]); got[i] != want {
				t.Errorf("%q leads to %q", target, got)
			}
		}
	})
}

// ServeMux matches an empty segment of a CONNECT to a wildcard without recording the value.
func TestAConnectToAPathThatIsNotCleanIsNowhere(t *testing.T) {
	type in struct {
		A string `path:"a"`
		B string `path:"b"`
	}
	handle := func(_ context.Context, req in) (in, error) { return req, nil }
	m := NewMux(Config{})
	both := m.Group("/g")
	check(t, errors.Join(m.Add(New("", "/x/{a}/y/{b}", handle), New("CONNECT", "/z/{a}/y/{b}", handle)), both.Add(New("", "/x/{a}/y/{b}", handle)),
		m.Handle("/plain/{a}/y/{b}", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%q %q", r.PathValue("a"), r.PathValue("b")) }))))
	r := New("", "/x/{a}/y/{b}", handle)
	h := must(r.Handler(Config{}))
	plain := http.NewServeMux()
	plain.Handle(r.Pattern(), h)
	connect := func(h http.Handler, path string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("CONNECT", "http://example.org", nil)
		r.URL = &url.URL{Path: path}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for _, path := range []string{"/x//y/2", "/z//y/2", "/g/x//y/2", "/plain//y/2", "/x/1/y//", "/x/../x/1/y/2", "//x/1/y/2", "x/1/y/2"} {
		if w := connect(m, path); w.Code != 404 || !strings.Contains(w.Body.String(), "no-such-resource") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := connect(plain, "/x//y/2"); w.Code != 404 || !strings.Contains(w.Body.String(), "no-such-resource") {
		t.Errorf("behind a plain ServeMux: %d %s", w.Code, w.Body)
	}
	for _, h := range []http.Handler{m, plain} {
		if w := connect(h, "/x/1/y/2"); w.Code != 200 || !strings.Contains(w.Body.String(), `"A":"1","B":"2"`) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if w := connect(m, ""); w.Code != 404 { // CONNECT to a host and a port
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// ServeMux represents {$} at the end of a pattern as a slash, and matches it with an escaped slash.
func TestAnEscapedSlashIsNotTheEndOfAPattern(t *testing.T) {
	ok := func(context.Context, Empty) (Empty, error) { return Empty{}, nil }
	m := NewMux(Config{})
	type in struct {
		Rest string `path:"rest"`
	}
	check(t, m.Add(New("GET", "/a/{$}", ok), New("PUT", "/a/{$}", ok), New("GET", "/b/{rest...}", func(_ context.Context, req in) (string, error) { return req.Rest, nil })))
	for path, status := range map[string]int{"/a/": 204, "/a/%2F": 404, "/a/%2f": 404, "/a/%2F/": 404, "/b/%2F": 200} {
		for _, method := range []string{"GET", "PUT", "POST"} {
			want := status
			if status == 204 && method == "POST" || status == 200 && method != "GET" {
				want = 405
			}
			if w := do(m, method, path, "", ""); w.Code != want {
				t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
			}
		}
	}
}

// An escaped slash does not separate the segments of a prefix.
func TestAnEscapedSlashIsNotThatOfAGroup(t *testing.T) {
	m := NewMux(Config{})
	m.Group("/a/b").Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Group", "b"); next.ServeHTTP(w, r) })
	})
	for path, group := range map[string]string{"/a/b/c": "b", "/a/%62/c": "b", "/a%2Fb/c": "", "/a/b%2Fc": ""} {
		if w := do(m, "GET", path, "", ""); w.Code != 404 || w.Header().Get("Group") != group {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
}
