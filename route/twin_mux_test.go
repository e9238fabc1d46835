package route

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// choices makes decisions of bytes. When the bytes are used up, each decision is the first.
type choices struct{ data []byte }

func (c *choices) of(options ...string) string {
	if len(c.data) == 0 {
		return options[0]
	}
	b := c.data[0]
	c.data = c.data[1:]
	return options[int(b)%len(options)]
}

func (c *choices) path(segments ...string) (path string) {
	for range c.of("a", "ab", "abc", "") {
		path += "/" + c.of(segments...)
	}
	return path
}

func (c *choices) pattern() string {
	path := c.path("a", "b", "{}", "%61", "c d")
	for name := 'p'; strings.Contains(path, "{}"); name++ {
		path = strings.Replace(path, "{}", "{"+string(name)+"}", 1)
	}
	end := c.of("", "/", "/{$}", "/{rest...}")
	if path+end == "" {
		end = "/"
	}
	return c.of("GET ", "POST ", "HEAD ", "LINK ", "", "CONNECT ") + c.of("", "", "h") + path + end
}

func (c *choices) request() (*http.Request, bool) {
	target := c.path("a", "b", "c", "%61", "%2F", "a%2Fb", "c%20d", "", "..", "%2e") + c.of("", "/", "//", "/%2f")
	if target == "" {
		target = "/"
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return nil, false
	}
	r := httptest.NewRequest(c.of("GET", "POST", "HEAD", "PUT", "OPTIONS", "CONNECT"), "/", nil)
	r.URL, r.Host = u, c.of("g", "h", "h:80", "[::1]:80", "h:80:80")
	return r, true
}

// compareWithServeMux registers patterns with a Mux and a bare ServeMux, and compares the statuses and
// Allow of their answers.
func compareWithServeMux(t *testing.T, data []byte) {
	c := &choices{data}
	m, bare := NewMux(Config{}), http.NewServeMux()
	var patterns []string
	ok := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Pattern", r.Pattern) })
	for range c.of("abc", "a", "ab", "abcdefgh") {
		pattern := c.pattern()
		refused := func() (refused bool) {
			defer func() { refused = recover() != nil }()
			bare.Handle(pattern, ok)
			return false
		}()
		if err := m.Handle(pattern, ok); (err != nil) != refused {
			t.Fatalf("%q after %q: %v, and ServeMux refuses it: %v", pattern, patterns, err, refused)
		}
		if !refused {
			patterns = append(patterns, pattern)
		}
	}
	for range 8 {
		r, valid := c.request()
		if !valid || unclean(r) {
			continue // a Mux has nothing at a CONNECT that is not clean
		}
		want, got := httptest.NewRecorder(), httptest.NewRecorder()
		bare.ServeHTTP(want, r.Clone(t.Context()))
		if strings.HasSuffix(want.Header().Get("Pattern"), "{$}") && endsInEscapedSlash(r.URL) {
			continue // a Mux has nothing there
		}
		if endsInEscapedSlash(r.URL) && want.Code == http.StatusMethodNotAllowed {
			continue // nor methods
		}
		if r.Method == http.MethodConnect && r.Host != "g" {
			continue // ServeMux takes the host of a CONNECT from the URL in one place, with its port in another
		}
		m.ServeHTTP(got, r.Clone(t.Context()))
		if got.Code != want.Code || got.Header().Get("Allow") != want.Header().Get("Allow") || got.Header().Get("Pattern") != want.Header().Get("Pattern") {
			t.Errorf("%q: %s %s%s: %d %v, ServeMux: %d %v", patterns, r.Method, r.Host, r.URL.EscapedPath(), got.Code, got.Header(), want.Code, want.Header())
		}
	}
}

func TestAMuxAnswersLikeServeMux(t *testing.T) {
	random, data := rand.NewChaCha8([32]byte{}), make([]byte, 120)
	for range 3000 {
		_, _ = random.Read(data)
		compareWithServeMux(t, data)
	}
}

func FuzzAMuxAnswersLikeServeMux(f *testing.F) {
	f.Add([]byte("every byte is a decision"))
	f.Fuzz(compareWithServeMux)
}
