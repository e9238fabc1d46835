package route

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/spillway-go/spillway"
)

// trail records the middleware that a request passed.
type trail struct {
	made, passed []string
}

// nameKey is the key of the value that a middleware puts into the context.
type nameKey string

// named returns middleware that records its creation and each request.
func (t *trail) named(name string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		t.made = append(t.made, name)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx := r.Context()
			t.passed = append(t.passed, strings.TrimSpace(fmt.Sprintf("%s %v/%d %s", name, spillway.PriorityFrom(ctx), spillway.CostFrom(ctx), r.Pattern)))
			next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, nameKey(name), true)))
		})
	}
}

func noContent(context.Context, Empty) (Empty, error) { return Empty{}, nil }

func TestOrderOfMiddleware(t *testing.T) {
	var seen trail
	m := NewMux(Config{})
	m.Use(seen.named("mux1"))
	outer := m.Group("/outer")
	inner := outer.Group("/inner")
	bare := inner.Group("/bare") // without middleware of its own
	inner.Use(seen.named("inner"))
	type in struct {
		ID string `path:"id"`
	}
	add := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	add(m.Add(New("GET", "/a", noContent).Use(seen.named("route1"), seen.named("route2")).Priority(spillway.High).Cost(3)))
	add(bare.Add(New("GET", "/{id}", func(ctx context.Context, req in) (string, error) {
		return fmt.Sprint(req.ID, " ", ctx.Value(nameKey("mux1")), ctx.Value(nameKey("outer")), ctx.Value(nameKey("inner"))), nil
	}).Priority(spillway.Low), New("PUT", "/b/{$}", noContent)))
	add(bare.Handle("GET /plain", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) })))
	m.Use(seen.named("mux2")) // after the routes
	outer.Use(seen.named("outer"))
	for _, c := range []struct {
		method, path string
		status       int
		passed       []string
	}{
		{"GET", "/a", 204, []string{"mux1 high/3 GET /a", "mux2 high/3 GET /a", "route1 high/3 GET /a", "route2 high/3 GET /a"}},
		{"HEAD", "/a", 204, []string{"mux1 high/3 GET /a", "mux2 high/3 GET /a", "route1 high/3 GET /a", "route2 high/3 GET /a"}},
		{"GET", "/outer/inner/bare/7", 200, []string{"mux1 low/0 GET /outer/inner/bare/{id}", "mux2 low/0 GET /outer/inner/bare/{id}", "outer low/0 GET /outer/inner/bare/{id}", "inner low/0 GET /outer/inner/bare/{id}"}},
		{"GET", "/outer/inner/bare/plain", 204, []string{"mux1 normal/0 GET /outer/inner/bare/plain", "mux2 normal/0 GET /outer/inner/bare/plain", "outer normal/0 GET /outer/inner/bare/plain", "inner normal/0 GET /outer/inner/bare/plain"}},
		{"GET", "/none", 404, []string{"mux1 normal/0", "mux2 normal/0"}},
		{"POST", "/a", 405, []string{"mux1 normal/0", "mux2 normal/0"}},
		{"GET", "/outer", 404, []string{"mux1 normal/0", "mux2 normal/0", "outer normal/0"}},
		{"GET", "/outerworld", 404, []string{"mux1 normal/0", "mux2 normal/0"}},
		{"POST", "/outer/inner/bare/7", 405, []string{"mux1 normal/0", "mux2 normal/0", "outer normal/0", "inner normal/0"}},
		{"PUT", "/outer/inner/bare/b", 307, []string{"mux1 normal/0", "mux2 normal/0", "outer normal/0", "inner normal/0"}},
		{"GET", "//a", 307, []string{"mux1 normal/0", "mux2 normal/0"}},
		{"GET", "/b/../outer/none", 307, []string{"mux1 normal/0", "mux2 normal/0", "outer normal/0"}},
	} {
		seen.passed = nil
		w := do(m, c.method, c.path, "", "")
		if w.Code != c.status || !slices.Equal(seen.passed, c.passed) {
			t.Errorf("%s %s: %d, passed %q", c.method, c.path, w.Code, seen.passed)
		}
		if c.status == 200 && w.Body.String() != `"7 true true true"` {
			t.Errorf("the handler got %s", w.Body)
		}
		if (c.status == 307) != (w.Header().Get("Location") != "") || c.status == 405 && w.Header().Get("Allow") == "" {
			t.Errorf("%s %s: %v", c.method, c.path, w.Header())
		}
	}
	if want := []string{"route2", "route1", "mux2", "mux1", "outer", "inner"}; !slices.Equal(seen.made, want) {
		t.Errorf("made %q: each once", seen.made)
	}
}

func TestACostIsNeverMoreThanAContextCanSay(t *testing.T) {
	ctx := admission{cost: math.MaxInt, costs: true}.context(spillway.WithPriority(t.Context(), spillway.Low))
	if n := spillway.CostFrom(ctx); n != math.MaxInt32 || spillway.PriorityFrom(ctx) != spillway.Low {
		t.Errorf("cost %d of %v", n, spillway.PriorityFrom(ctx))
	}
}

// A middleware with a limiter has one limiter for all routes.
func TestMiddlewareMayRefuseWhateverTheMuxWouldAnswer(t *testing.T) {
	m := NewMux(Config{})
	m.Use(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.Problem(w, r, &Problem{Status: 401}) })
	})
	check(t, m.Add(New("GET", "/a/{$}", noContent)))
	for _, path := range []string{"/a/", "/a", "/b", "/b//c"} {
		w := do(m, "GET", path, "", "")
		if w.Code != 401 || w.Header().Get("Location") != "" || problemOf(t, w.Header().Get("Content-Type"), w.Body.String()).Status != 401 {
			t.Errorf("%s: %d %v %s", path, w.Code, w.Header(), w.Body)
		}
	}
}

func TestMiddlewareThatPassesOnAnotherRequestIsTold(t *testing.T) {
	m := NewMux(Config{})
	m.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, httptest.NewRequest("GET", "/a", nil))
		})
	})
	check(t, m.Add(New("GET", "/a", noContent)))
	defer func() {
		if v := recover(); !strings.Contains(fmt.Sprint(v), "WithContext or Clone") {
			t.Error(v)
		}
	}()
	do(m, "GET", "/a", "", "")
}

func TestAMuxInAMux(t *testing.T) {
	var seen trail
	inner, outer := NewMux(Config{}), NewMux(Config{})
	inner.Use(seen.named("inner"))
	outer.Use(seen.named("outer"))
	check(t, inner.Add(New("GET", "/in/a", noContent)))
	check(t, outer.Handle("/in/", inner))
	for path, want := range map[string]int{"/in/a": 204, "/in/b": 404, "/x": 404} {
		seen.passed = nil
		if w := do(outer, "GET", path, "", ""); w.Code != want || len(seen.passed) != map[bool]int{true: 2, false: 1}[path != "/x"] {
			t.Errorf("%s: %d, passed %q", path, w.Code, seen.passed)
		}
	}
}

func TestGroupsInheritAndAdd(t *testing.T) {
	first, second := fmt.Errorf("first"), fmt.Errorf("second")
	rules := make(Errors, 0, 8)
	m := NewMux(Config{Errors: append(rules, Is(first, Problem{Status: 410})), ProblemBase: "urn:x:", Untimed: true})
	coded := func(code int) func(*Config) {
		return func(c *Config) { c.Errors = append(c.Errors, Is(second, Problem{Status: code})) }
	}
	a := m.Group("/a/{ward}", coded(411))
	b := m.Group("/b", coded(412), func(c *Config) { c.ProblemBase = "urn:y:" })
	type in struct {
		Ward string `path:"ward"`
		Err  string `query:"err"`
	}
	type flat struct {
		Err string `query:"err"`
	}
	fails := func(_ context.Context, req flat) (Empty, error) {
		switch req.Err {
		case "first":
			return Empty{}, first
		case "second":
			return Empty{}, second
		}
		return Empty{}, &Problem{Status: 409, Type: "t"}
	}
	for _, err := range []error{
		m.Add(New("GET", "/m", fails)),
		a.Add(New("GET", "", func(ctx context.Context, req in) (Empty, error) { return fails(ctx, flat{req.Err}) }).Name("a")),
		b.Add(New("GET", "example.org/x", fails), New("GET", "/x", fails)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		target string
		status int
		kind   string
	}{
		{"/m?err=first", 410, ""}, {"/m?err=second", 500, "urn:x:internal"}, {"/m", 409, "urn:x:t"},
		{"/a/7?err=first", 410, ""}, {"/a/7?err=second", 411, ""}, {"/a/7", 409, "urn:x:t"},
		{"/b/x?err=first", 410, ""}, {"/b/x?err=second", 412, ""}, {"/b/x", 409, "urn:y:t"},
		{"http://example.org/b/x", 409, "urn:y:t"},
		{"/b/none", 404, "urn:y:no-such-resource"}, {"/a/7/none", 404, "urn:x:no-such-resource"}, {"/bb", 404, "urn:x:no-such-resource"},
	} {
		w := do(m, "GET", c.target, "", "")
		if p := problemOf(t, w.Header().Get("Content-Type"), w.Body.String()); w.Code != c.status || p.Type != c.kind {
			t.Errorf("%s: %d %s", c.target, w.Code, w.Body)
		}
	}
}

// Sibling groups share the middleware of their parent and no other middleware.
func TestGroupsBesideEachOtherHaveTheirOwnMiddleware(t *testing.T) {
	var seen trail
	m := NewMux(Config{})
	m.Use(seen.named("mux"))
	g := m.Group("/a")
	g.Use(seen.named("a"))
	g = g.Group("/b")
	g.Use(seen.named("b"))
	for _, name := range []string{"one", "two"} {
		inner := g.Group("/" + name)
		inner.Use(seen.named(name))
		check(t, inner.Add(New("GET", "", noContent)))
	}
	for _, name := range []string{"one", "two"} {
		seen.passed = nil
		path := "/a/b/" + name
		do(m, "GET", path, "", "")
		if got := strings.ReplaceAll(strings.Join(seen.passed, " "), " normal/0 GET "+path, ""); got != "mux a b "+name {
			t.Errorf("%s passed %q", path, got)
		}
	}
}

// A problem is written in the format of the request's group. With a pattern, that is the pattern's
// group, whatever prefix the path has. Without a pattern, it is the group with the longest prefix, and the most literal one.
func TestProblemsAreThoseOfTheGroup(t *testing.T) {
	m := NewMux(Config{ProblemBase: "urn:root:"})
	based := func(base string) func(*Config) { return func(c *Config) { c.ProblemBase = base } }
	m.Group("/a/b", based("urn:ab:"))
	m.Group("/a", based("urn:a:"))
	m.Group("/{tenant}", based("urn:tenant:"))
	m.Group("/b", based("urn:b:"))
	m.Group("/{tenant}/x", based("urn:x:"))
	m.Group("/c%20d", based("urn:cd:"))
	m.Group("/b", based("urn:second:"))
	check(t, m.Handle("GET /a/x", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.Problem(w, r, &Problem{Status: 409, Type: "no-such-resource"})
	})))
	for path, want := range map[string]string{"/a/x": "root", "/a/y": "a", "/a/b/y": "ab", "/c": "tenant", "/": "root", "/b/y": "b", "/b/x/y": "x", "/%62": "b", "/c%20d": "cd", "/c%20d/x": "x", "/c%2Fd/x": "x"} {
		w := do(m, "GET", path, "", "")
		if p := problemOf(t, w.Header().Get("Content-Type"), w.Body.String()); p.Type != "urn:"+want+":no-such-resource" {
			t.Errorf("%s: %d %s, want that of %s", path, w.Code, p.Type, want)
		}
	}
}

func TestAllThatIsWrongWithGroupsAndOptionsIsToldAtOnce(t *testing.T) {
	m := NewMux(Config{Consumes: []string{"application/FHIR+json", "text/plain"}, Produces: "json", ProblemFormat: ProblemFormat{MediaType: "a/b"}, Limits: Limits{Body: -1, Handle: 2}})
	contains(t, m.Add(), `Config.Consumes: "application/FHIR+json" is no media type`, "Config.Consumes: text/plain is not for JSON", `Config.Produces: "json"`, "Config.ProblemFormat: no Encode", "Config.Limits: limit Body is negative", "limit Handle is 2ns: the least is 1ms")
	_, err := New("GET", "/", noContent).Handler(Config{Produces: "json"})
	contains(t, err, `Config.Produces: "json"`)

	m = NewMux(Config{})
	for _, prefix := range []string{"", "a", "/", "/a/", "//a", "/a/../b", "/{x...}", "/a b", "/a/{$}"} {
		g := m.Group(prefix)
		contains(t, g.Add(New("GET", "/x", noContent)), "of a group")
		contains(t, g.Handle("GET /x", http.NotFoundHandler()), "of a group")
		contains(t, g.Group("/fine").Add(), "of a group")
	}
	contains(t, m.Add(New("POST", "/a", noContent).Status(999).Consumes("application/xml").Produces("noContent").Priority(9).Cost(0).Use(nil).Limits(Limits{Read: -1}).
		Operation(nil).Answers(99, Answer{}).Answers(200, Answer{Headers: map[string]string{"a b": ""}, Body: make(chan int)}).Answers(200, Answer{}).Answers(304, Answer{Body: 1})),
		"999 is no status of a success", "application/xml is not for JSON", "Consumes is for a JSON body", `"noContent" is no content type`, "Produces is for what is encoded",
		"priority(9) is no priority", "cost 0 is less than one slot", "a middleware is nil", "limit Read is negative", "an Operation is nil",
		"answer 99: is no status", `answer 200: "a b" is no name of a header`, "answer 200: response type chan int cannot be encoded", "answer 200: is described twice", "answer 304: has no body")
	type in struct {
		ID string `path:"id"`
	}
	contains(t, m.Group("/{id}").Add(New("GET", "/a", noContent), New("GET", "/b", func(context.Context, in) (Empty, error) { return Empty{}, nil }).Name("b")), "route GET /{id}/a: ", "no field comes from {id}")
	contains(t, m.Add(New("GET", "/c", noContent).Name("b")), "another route is called b")
	func() {
		defer func() { contains(t, fmt.Errorf("%v", recover()), "nil middleware") }()
		m.Use(nil)
	}()
}

func contains(t *testing.T, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error: want %q", want)
		return
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v\ndoes not say %q", err, w)
		}
	}
}
