package route

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/spillway-go/spillway"
)

// plainly writes problems as text.
var plainly = ProblemFormat{
	MediaType: "text/plain; charset=utf-8",
	Encode: func(p *Problem) ([]byte, error) {
		if p.Type == "urn:spillway:problem:unspeakable" {
			return nil, errors.New("no words")
		}
		return []byte(p.Type + "|" + p.Title + "|" + p.Detail), nil
	},
}

func TestProblemsAreWrittenInTheirFormat(t *testing.T) {
	type in struct {
		N int `query:"n"`
	}
	var reports []string
	m := NewMux(Config{Report: func(_ context.Context, pattern string, err error) { reports = append(reports, pattern+" "+err.Error()) }})
	text := m.Group("/text", func(c *Config) { c.ProblemFormat = plainly })
	add := func(to interface{ Add(...*Route) error }) {
		if err := to.Add(
			New("GET", "/fails", func(context.Context, in) (Empty, error) {
				return Empty{}, &Problem{Status: 409, Type: "t", Detail: "d"}
			}),
			New("GET", "/unspeakable", func(context.Context, in) (Empty, error) {
				return Empty{}, &Problem{Status: 409, Type: "unspeakable"}
			})); err != nil {
			t.Fatal(err)
		}
	}
	add(m)
	add(text)
	check(t, text.Handle("GET /shed", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.Problem(w, r, &spillway.Rejection{Reason: spillway.ReasonQueueFull, RetryAfter: 2e9})
	})))
	const base = "urn:spillway:problem:"
	for _, c := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/text/fails", 409, base + "t|Conflict|d"},
		{"GET", "/text/fails?n=x", 400, base + "invalid-request|Bad Request|the request has faults; each is listed"},
		{"GET", "/text/none", 404, base + "no-such-resource|Not Found|there is nothing at this path"},
		{"POST", "/text/fails", 405, base + "method-not-allowed|Method Not Allowed|this path does not have this method"},
		{"GET", "/text/shed", 503, overloaded + "|Temporary Reduced Capacity|not admitted: queue_full"},
		{"GET", "/text/unspeakable", 409, ""},
		{"GET", "/fails", 409, ""},
		{"GET", "/none", 404, ""},
	} {
		w := do(m, c.method, c.path, "", "")
		media := problemMedia
		if c.body != "" {
			media = plainly.MediaType
		}
		if w.Code != c.status || w.Header().Get("Content-Type") != media || c.body != "" && w.Body.String() != c.body || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v %s", c.path, w.Code, w.Header(), w.Body)
		}
		if c.status == 503 && w.Header().Get("Retry-After") != "2" {
			t.Errorf("%v", w.Header())
		}
	}
	if want := []string{"GET /text/unspeakable encode problem: no words"}; !slices.Equal(reports, want) {
		t.Errorf("reported %q", reports)
	}
}

func TestMediaTypesOfRequestsAndAnswers(t *testing.T) {
	const fhir = "application/fhir+json"
	type in struct {
		Name string `json:"name" form:"name"`
	}
	echo := func(_ context.Context, req in) (string, error) { return req.Name, nil }
	m := NewMux(Config{Codecs: lines})
	g := m.Group("/fhir", func(c *Config) { c.Consumes, c.Produces = []string{fhir, "application/json"}, fhir+"; fhirVersion=4.0" })
	check(t, errors.Join(m.Add(New("POST", "/json", echo)), g.Add(New("POST", "/both", echo), New("POST", "/one", echo).Consumes(fhir).Produces("application/x+json"),
		New("GET", "/own", func(context.Context, Empty) (Response[string], error) {
			return Response[string]{Header: http.Header{"Content-Type": {"application/y+json"}}}, nil
		}))))
	for _, c := range []struct {
		path, media string
		status      int
		answer      string
	}{
		{"/json", "application/json", 200, "application/json"},
		{"/json", fhir, 415, problemMedia},
		{"/fhir/both", fhir, 200, fhir + "; fhirVersion=4.0"},
		{"/fhir/both", "Application/FHIR+JSON; charset=UTF-8; fhirVersion=4.0", 200, fhir + "; fhirVersion=4.0"},
		{"/fhir/both", fhir + "; charset=latin1", 415, problemMedia},
		{"/fhir/both", "application/json", 200, fhir + "; fhirVersion=4.0"},
		{"/fhir/both", "application/json; a=b", 200, fhir + "; fhirVersion=4.0"},
		{"/fhir/one", "application/json", 415, problemMedia},
		{"/fhir/one", "application/json; a=b", 415, problemMedia},
		{"/fhir/one", fhir, 200, "application/x+json"},
		{"/fhir/one", "text/json", 415, problemMedia},
		{"/fhir/own", "", 200, "application/y+json"},
	} {
		method := "POST"
		if c.media == "" {
			method = "GET"
		}
		w := do(m, method, c.path, c.media, `{"name":"a"}`)
		if w.Code != c.status || w.Header().Get("Content-Type") != c.answer {
			t.Errorf("%s %s: %d %v %s", c.path, c.media, w.Code, w.Header(), w.Body)
		}
		if c.status == 415 && strings.HasPrefix(c.path, "/fhir/one") && !strings.Contains(w.Body.String(), "send "+fhir+" or application/x-lines") {
			t.Errorf("%s", w.Body)
		}
	}
	// The form of the same route is accepted as before.
	if w := do(m, "POST", "/fhir/one", "application/x-www-form-urlencoded", "name=a"); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	doc := must(m.OpenAPI(Info{}))
	var d struct {
		Paths map[string]map[string]struct {
			RequestBody struct{ Content map[string]any }
			Responses   map[string]struct{ Content map[string]any }
		}
	}
	check(t, json.Unmarshal(doc, &d))
	both, one := d.Paths["/fhir/both"]["post"], d.Paths["/fhir/one"]["post"]
	if c := both.RequestBody.Content; c[fhir] == nil || c["application/json"] == nil || both.Responses["200"].Content[fhir] == nil {
		t.Errorf("%+v", both)
	}
	if c := one.RequestBody.Content; c[fhir] == nil || c["application/json"] != nil || c["application/x-lines"] == nil || one.Responses["200"].Content["application/x+json"] == nil {
		t.Errorf("%+v", one)
	}
}

// No malformed Content-Type makes a body count as another type than the header names.
func FuzzContentType(f *testing.F) {
	for _, seed := range []string{"", "application/json", "application/fhir+json", "APPLICATION/FHIR+JSON ; charset=utf-8", "application/fhir+json;charset=x", "application/fhir+json, application/json", "a/b;\x00", "application/fhir+json;;", "*/*"} {
		f.Add(seed)
	}
	type in struct {
		Name string `json:"name"`
	}
	m := NewMux(Config{Consumes: []string{"application/fhir+json"}})
	check(f, m.Add(New("POST", "/", func(context.Context, in) (Empty, error) { return Empty{}, nil })))
	f.Fuzz(func(t *testing.T, media string) {
		w := do(m, "POST", "/", media, `{"name":"a"}`)
		plain, _, _ := strings.Cut(media, ";")
		ours := strings.EqualFold(strings.TrimSpace(plain), "application/fhir+json")
		if w.Code == 204 && !ours || w.Code != 204 && w.Code != 415 && (w.Code != 400 || media != "") {
			t.Errorf("%q: %d", media, w.Code)
		}
		if w.Code != 204 && media == "application/fhir+json" {
			t.Errorf("%q: %d", media, w.Code)
		}
	})
}

// For every path a request passes the middleware of the mux once, and the middleware of a group
// once if the path is below the prefix.
func FuzzPathsOfGroups(f *testing.F) {
	for _, seed := range []string{"/", "/a", "/wards/7/x", "/wards/7", "/wards//x", "/wards/7/../8/x", "//wards/7/x", "/wards/7/x/", "wards/7/x", "/wards/%2f/x", "*", ""} {
		f.Add("GET", seed)
	}
	type in struct {
		Ward string `path:"ward"`
	}
	counts := map[string]int{}
	counted := func(name string) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { counts[name]++; next.ServeHTTP(w, r) })
		}
	}
	m := NewMux(Config{})
	g := m.Group("/wards/{ward}")
	m.Use(counted("mux"))
	g.Use(counted("group"))
	check(f, g.Add(New("GET", "/x/{$}", func(context.Context, in) (Empty, error) { return Empty{}, nil }), New("GET", "/y", func(context.Context, in) (Empty, error) { return Empty{}, nil })))
	f.Fuzz(func(t *testing.T, method, path string) {
		h := newHarness("GET", "/", "", "")
		h.request.Method, h.request.URL.Path = method, path
		clear(counts)
		h.run(m)
		if counts["mux"] != 1 || counts["group"] > 1 || h.status == 204 && counts["group"] != 1 || counts["group"] == 1 && !strings.Contains(path, "wards/") {
			t.Errorf("%s %q: %d, %v", method, path, h.status, counts)
		}
	})
}
