package route

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/route/internal/wire"
)

// answered is a problem as a client reads it.
type answered struct {
	Type, Title, Detail string
	Status              int
	Errors              []Fault
}

func problemOf(t *testing.T, media, body string) (p answered) {
	t.Helper()
	if media != "application/problem+json" || json.Unmarshal([]byte(body), &p) != nil {
		t.Errorf("no problem: %s %s", media, body)
	}
	return p
}

func TestEveryKindOfBadRequest(t *testing.T) {
	const j, f, x = "application/json", "application/x-www-form-urlencoded", "application/xml"
	pointer := func(pointer, detail string) Fault { return Fault{Pointer: pointer, Detail: detail} }
	in := func(in, name, detail string) Fault { return Fault{In: in, Parameter: name, Detail: detail} }
	fileAsField, fileAsFieldBody := multiparted("name", "Ada", "file", "text")
	fieldAsFile, fieldAsFileBody := multiparted("@name", "Ada")
	twoFiles, twoFilesBody := multiparted("name", "Ada", "@file", "1", "@file", "2")
	for _, c := range []struct {
		name, media, query, body string
		status                   int
		kind                     string
		faults                   []Fault
	}{
		{"no content type", "", "", `{}`, 400, "missing-content-type", nil},
		{"unknown content type", "application/pdf", "", `{}`, 415, "unsupported-media-type", nil},
		{"malformed content type", "json;;=", "", `{}`, 415, "unsupported-media-type", nil},
		{"foreign charset", "application/json; charset=latin1", "", `{}`, 415, "unsupported-media-type", nil},
		{"empty json", j, "", "", 400, "invalid-request", []Fault{pointer("#", "is not valid JSON")}},
		{"broken json", j, "", `{"name":"Ada","home":{"city":`, 400, "invalid-request", []Fault{pointer("#/home/city", "is not valid JSON")}},
		{"two values", j, "", `{"name":"Ada","home":{"city":"L"}}{}`, 400, "invalid-request", []Fault{pointer("#", "is not valid JSON")}},
		{"another json", j, "", `["Ada"]`, 400, "invalid-request", []Fault{pointer("#", "must be an object")}},
		{"invalid UTF-8", j, "", "{\"name\":\"\xff\"}", 400, "invalid-request", []Fault{pointer("#", "is not valid UTF-8")}},
		{"every member wrong", j, "",
			`{"name":1,"age":300,"rate":"x","on":0,"born":"monday","tags":[1,"a",2],"home":{"city":true,"next":[{"city":"a","zip":{}}],"x~/y z":1},"maybe":null,"extra":{"a":1.5},"blob":"?","nope":1,"on":true}`,
			400, "invalid-request", []Fault{
				pointer("#/name", "must be a string"), pointer("#/age", "is out of range"), pointer("#/rate", "must be a number"),
				pointer("#/on", "must be true or false"), pointer("#/born", "must be a time such as 2006-01-02T15:04:05Z"),
				pointer("#/tags/0", "must be a string"), pointer("#/tags", "must have at most 2 elements"),
				pointer("#/home/city", "must be a string"), pointer("#/home/next/0/zip", "must be a string"), pointer("#/home/x~0~1y%20z", "is not a member"),
				pointer("#/maybe", "must not be null"), pointer("#/extra/a", "must be a whole number"), pointer("#/blob", "must be a base64 string"),
				pointer("#/nope", "is not a member"), pointer("#/on", "is given more than once"),
			}},
		{"missing members", j, "", `{"home":{"next":[{}]}}`, 400, "invalid-request", []Fault{
			pointer("#/home/next/0/city", "is required"), pointer("#/home/city", "is required"), pointer("#/name", "is required")}},
		{"null for what is required", j, "", `{"name":"A","home":{"city":null}}`, 400, "invalid-request", []Fault{pointer("#/home/city", "must not be null")}},
		{"rules", j, "", `{"name":"Augusta","age":-1,"tags":["a","b","c"],"home":{"city":"x","zip":"1234"}}`, 400, "invalid-request", []Fault{
			pointer("#/name", "must have at most 5 characters"), pointer("#/age", "must be at least 0"),
			pointer("#/tags", "must have at most 2 elements"), pointer("#/home/zip", "must match ^[0-9]{5}$")}},
		{"form", f, "", "age=x&age=1&colour=%C3%A4&%zz=1&a;b", 400, "invalid-request", []Fault{
			in("form", "age", "must be a whole number"), in("form", "age", "is given more than once"), in("form", "colour", "is not a field"),
			{In: "form", Detail: "is not valid percent-encoding"}, {In: "form", Detail: wire.Semicolon}, in("form", "name", "is required")}},
		{"form without a required field", f, "", "age=1", 400, "invalid-request", []Fault{in("form", "name", "is required")}},
		{"form against a rule", f, "", "name=Augusta", 400, "invalid-request", []Fault{in("form", "name", "must have at most 5 characters")}},
		{"multipart, file as a field", fileAsField, "", fileAsFieldBody, 400, "invalid-request", []Fault{in("form", "file", "must be a file")}},
		{"multipart, field as a file", fieldAsFile, "", fieldAsFileBody, 400, "invalid-request", []Fault{in("form", "name", "must not be a file")}},
		{"multipart, two files", twoFiles, "", twoFilesBody, 400, "invalid-request", []Fault{in("form", "file", "is given more than once")}},
		{"multipart without a boundary", "multipart/form-data", "", "x", 400, "invalid-request", []Fault{{In: "form", Detail: "Content-Type has no boundary"}}},
		{"multipart cut off in a head", "multipart/form-data; boundary=x", "", "--x\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nAda\r\n--x\r\nContent-Dis", 400, "invalid-request", []Fault{{In: "form", Detail: "is not a valid multipart form"}}},
		{"multipart cut off", fileAsField, "", fileAsFieldBody[:60], 400, "invalid-request", []Fault{{In: "form", Detail: "is not a valid multipart form"}}},
		{"xml", x, "", `<p colour="red"><name>Ada</name><nope><a/></nope><home><city>x</city><street/></home></p>`, 400, "invalid-request", []Fault{
			pointer("#/@colour", "is not a member"), pointer("#/nope", "is not a member"), pointer("#/home/street", "is not a member")}},
		{"xml rules", x, "", `<p><name>Augusta</name><home><zip>12345</zip></home></p>`, 400, "invalid-request", []Fault{
			pointer("#/home/city", "is required"), pointer("#/name", "must have at most 5 characters")}},
		{"every element wrong", x, "", `<p rate="x"><name>Ada</name><age>300</age><on/><born>monday</born><home><city/><zip>1</zip><next><city><b/></city></next><next/></home><name>B</name></p>`, 400, "invalid-request", []Fault{
			pointer("#/@rate", "must be a number"), pointer("#/age", "is out of range"), pointer("#/on", "must be true or false"),
			pointer("#/born", "must be a time such as 2006-01-02T15:04:05Z"), pointer("#/home/next/0/city", "must be text"),
			pointer("#/home/next/1/city", "is required"), pointer("#/name", "is given more than once"), pointer("#/home/zip", "must match ^[0-9]{5}$")}},
		{"broken xml", x, "", `<p><name>Ada</p>`, 400, "invalid-request", []Fault{pointer("#", "is not valid XML")}},
		{"xml of two roots", x, "", `<p><name>Ada</name><home><city>x</city></home></p><p/>`, 400, "invalid-request", []Fault{pointer("#", "is not valid XML")}},
		{"xml entities", x, "", `<!DOCTYPE p [<!ENTITY a "b">]><p><name>&a;</name></p>`, 400, "invalid-request", []Fault{pointer("#", "must have no document type")}},
		{"codec", "application/x-lines", "", "Ada", 400, "invalid-request", []Fault{pointer("#", "cannot be decoded")}},
		{"text against a rule", "text/plain", "", "0123456789", 400, "invalid-request", []Fault{pointer("#", "must have at most 9 characters")}},
		{"parameters", "text/plain", "?page=0&size=x&since=5&colour=1&%zz&q=1;q=2", "ok", 400, "invalid-request", []Fault{
			in("query", "size", "must be a whole number that is not negative"), in("query", "since", "must be a duration such as 1.5s"),
			in("query", "colour", "is not a parameter"), {In: "query", Detail: "is not valid percent-encoding"},
			{In: "query", Detail: "has a semicolon: separate what it separates by &, and write %3B for one that is meant"}, in("query", "page", "must be at least 1")}},
		{"parameter against a rule", "text/plain", "?page=0", "ok", 400, "invalid-request", []Fault{in("query", "page", "must be at least 1")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := everywhere(t)
			w := do(s, "POST", "/x/1"+c.query, c.media, c.body)
			p := problemOf(t, w.Header().Get("Content-Type"), w.Body.String())
			if w.Code != c.status || p.Status != c.status || p.Type != "urn:spillway:problem:"+c.kind || p.Title != http.StatusText(c.status) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if !reflect.DeepEqual(p.Errors, c.faults) {
				t.Errorf("\n got %+v\nwant %+v", p.Errors, c.faults)
			}
			if s.calls > 0 {
				t.Error("the handler ran")
			}
		})
	}
}

func TestNoAnswerRepeatsAValueOrALongName(t *testing.T) {
	s := everywhere(t)
	const secret = "s3cr3t"
	long := strings.Repeat("n", 5000)
	for _, c := range [][3]string{
		{"application/json", `{"name":"` + secret + secret + `","age":"` + secret + `","born":"` + secret + `","` + long + `":"` + secret + `"}`},
		{"application/x-www-form-urlencoded", "name=" + secret + secret + "&age=" + secret + "&" + long + "=" + secret},
		{"application/xml", `<p rate="` + secret + `"><name>` + secret + secret + `</name><` + long + `/></p>`},
		{"text/plain", secret + secret, "?page=" + secret + "&" + long + "=" + secret},
	} {
		w := do(s, "POST", "/x/"+secret+c[2], c[0], c[1])
		if w.Code != 400 || strings.Contains(w.Body.String(), secret) || w.Body.Len() > 2000 {
			t.Errorf("%s: %d %.3000s", c[0], w.Code, w.Body)
		}
	}
	many := "{" + strings.TrimSuffix(strings.Repeat(`"x":1,`, 10_000), ",") + "}"
	if w := do(s, "POST", "/x/1", "application/json", many); w.Code != 400 || strings.Count(w.Body.String(), "detail") > wire.MaxFaults+1 {
		t.Errorf("%d, %d bytes", w.Code, w.Body.Len())
	}
}

type conflict struct{ version int }

func (conflict) Error() string { return "conflict" }

func TestErrorsAreMappedInOnePlace(t *testing.T) {
	var reported []error
	known, bare := errors.New("known"), errors.New("bare")
	cfg := Config{
		OnProblem: func(_ http.ResponseWriter, _ *http.Request, p *Problem, err error) {
			if p.Status < 200 {
				t.Errorf("%v: OnProblem is shown status %d", err, p.Status)
			}
		},
		ProblemBase: "https://example.org/problems/",
		Errors: Errors{
			Is(bare, Problem{}),
			Is(known, Problem{Status: 404, Type: "unknown", Detail: "no such thing"}),
			As(409, func(c conflict) Problem { return Problem{Detail: fmt.Sprintf("it is at version %d", c.version)} }),
		},
		Report: func(_ context.Context, pattern string, err error) {
			reported = append(reported, fmt.Errorf("%s: %w", pattern, err))
		},
	}
	var fails error
	m := NewMux(cfg)
	check(t, m.Add(New("GET", "/", func(context.Context, Empty) (Empty, error) { return Empty{}, fails })))
	for _, c := range []struct {
		err         error
		status      int
		kind, after string
	}{
		{fmt.Errorf("at /var/db: %w", known), 404, "https://example.org/problems/unknown", ""},
		{fmt.Errorf("at /var/db: %w", conflict{7}), 409, "", ""},
		{&Problem{Status: 418, Type: "urn:teapot", RetryAfter: 300 * time.Millisecond}, 418, "urn:teapot", "1"},
		{&spillway.Rejection{Reason: spillway.ReasonQueueFull, RetryAfter: 1001 * time.Millisecond}, 503, overloaded, "2"},
		{&spillway.Rejection{Reason: spillway.ReasonDraining}, 503, overloaded, "1"},
		{&spillway.Rejection{Reason: spillway.ReasonQuota, RetryAfter: 2 * time.Second}, 429, overloaded, "2"},
		{fmt.Errorf("asking: %w", context.DeadlineExceeded), 504, "https://example.org/problems/timeout", ""},
		{&InvalidError{Faults: []Fault{{Detail: "x"}}}, 400, "https://example.org/problems/invalid-request", ""},
		{context.Canceled, 500, "https://example.org/problems/internal", ""}, // not the client's context
		{errors.New("a bug at /var/db"), 500, "https://example.org/problems/internal", ""},
		{&Problem{Status: 1}, 500, "", ""},
		{&Problem{Type: "urn:bare"}, 500, "urn:bare", ""},
		{bare, 500, "", ""},
	} {
		fails = c.err
		w := do(m, "GET", "/", "", "")
		p := problemOf(t, w.Header().Get("Content-Type"), w.Body.String())
		if w.Code != c.status || p.Type != c.kind || w.Header().Get("Retry-After") != c.after || strings.Contains(w.Body.String(), "/var") {
			t.Errorf("%v: %d %s, Retry-After %q", c.err, w.Code, w.Body, w.Header().Get("Retry-After"))
		}
	}
	if len(reported) != 2 || !strings.Contains(reported[1].Error(), "GET /: a bug at /var/db") {
		t.Errorf("reported %v", reported)
	}
}

func TestALimiterIsAskedBeforeTheBodyIsRead(t *testing.T) {
	lim := must(limiter.New(limiter.Config{}))
	type in struct {
		A int `json:"a"`
	}
	m := NewMux(Config{})
	boom := false
	check(t, m.Add(New("POST", "/", func(context.Context, in) (Empty, error) {
		if boom {
			panic("boom")
		}
		return Empty{}, nil
	}).Limiter(lim)))
	w := do(m, "POST", "/", "application/json", `{"a":1}`)
	if timing := w.Header().Get("Server-Timing"); w.Code != 204 || !strings.Contains(timing, "decode;dur=") || !strings.Contains(timing, ", wait;dur=") || !strings.Contains(timing, ", handle;dur=") {
		t.Errorf("%d, Server-Timing %q", w.Code, timing)
	}
	do(m, "POST", "/", "application/json", `{"a":"x"}`)
	func() {
		boom = true
		defer func() {
			if v := recover(); v != "boom" {
				t.Errorf("recovered %v", v)
			}
		}()
		do(m, "POST", "/", "application/json", `{"a":1}`)
	}()
	if n := lim.Stats().InFlight; n != 0 {
		t.Errorf("%d slots are lost", n)
	}
	lim.Close()
	refused := doBody(m, failingBody{t})
	if refused.status != 503 || refused.header.Get("Retry-After") == "" {
		t.Errorf("%d %v", refused.status, refused.header)
	}
}

// failingBody must not be read.
type failingBody struct{ t *testing.T }

func (b failingBody) Read([]byte) (int, error) { b.t.Error("the body was read"); return 0, io.EOF }
func (failingBody) Close() error               { return nil }

func doBody(h http.Handler, body io.ReadCloser) *harness {
	w := newHarness("POST", "/", "application/json", "x")
	w.request.Body, w.request.ContentLength = body, -1
	w.run(h)
	return w
}
