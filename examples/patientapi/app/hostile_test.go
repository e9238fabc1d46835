package app

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/internal/await"
)

// Nothing that this file sends has a token, so none of it may reach the store, or be
// answered with what is known of anybody.

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "QUERY", "get", "G"}

// public are the paths that everybody may read.
var public = []string{"/", "/livez", "/readyz", "/openapi.json", "/fhir/metadata"}

// paths are those that a service says it has, with a patient who exists in the place of
// each variable.
func paths(t *testing.T, r *running) []string {
	t.Helper()
	all := slices.Clone(public)
	_, text := r.get(t, "/openapi.json")
	var doc struct{ Paths map[string]any }
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	for path := range doc.Paths {
		all = append(all, strings.ReplaceAll(path, "{id}", "P000007"), strings.ReplaceAll(path, "{id}", "P000007")+"?id=P000007")
	}
	_, text = r.get(t, "/fhir/metadata")
	var capabilities struct {
		Rest []struct{ Resource []struct{ Type string } }
	}
	if err := json.Unmarshal([]byte(text), &capabilities); err != nil {
		t.Fatal(err)
	}
	for _, resource := range capabilities.Rest[0].Resource {
		kind := "/fhir/" + resource.Type
		all = append(all, kind, kind+"?patient=P000007&_id=P000007", kind+"/P000007", kind+"/P000007-o1", kind+"/P000007-m1", kind+"/_search", kind+"/$everything", kind+"/P000007/$everything", kind+"/P000007/_history", kind+"/P000007/_history/1")
	}
	if len(doc.Paths) < 3 || len(all) < 30 {
		t.Fatalf("too little is described: %q", all)
	}
	// What is for those who run the service is not for clients at all.
	return append(all, "/metrics", "/health", "/debug/spillway/", "/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/cmdline", "/debug/vars", "/fhir", "/fhir/", "/api", "/api/v1/", "*")
}

// answers sends text on a connection of its own and returns all that comes back. The
// service must end the connection, where the caller does not end it first.
func answers(t *testing.T, addr, text string, end bool) string {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, await.Limit)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(await.Limit))
	if _, err := io.WriteString(conn, text); err == nil && end {
		_ = conn.(*net.TCPConn).CloseWrite()
	}
	all, err := io.ReadAll(conn)
	if failed, ok := err.(net.Error); ok && failed.Timeout() {
		t.Errorf("%.200q: the connection stays open", text)
	}
	return string(all)
}

// exchange is one answer of several on a connection.
type exchange struct {
	status int
	body   string
}

// parsed are the answers on a connection; the request of each is by that method.
func parsed(t *testing.T, text, method string) (all []exchange) {
	t.Helper()
	r := bufio.NewReader(strings.NewReader(text))
	for {
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			return all
		}
		body, _ := io.ReadAll(resp.Body)
		all = append(all, exchange{resp.StatusCode, string(body)})
	}
}

// closed fails the test if an answer to somebody without a token opens anything.
func closed(t *testing.T, what string, got []exchange, open bool) {
	t.Helper()
	for _, e := range got {
		switch {
		case e.status >= 500 && e.status != 501 && e.status != 503 && e.status != 505:
			t.Errorf("%s: %d %s", what, e.status, e.body)
		case e.status < 400 && !open && e.status != 301 && e.status != 307 && e.status != 308:
			t.Errorf("%s: %d %.300s", what, e.status, e.body)
		}
		about(7).nowhere(t, what, strings.ReplaceAll(e.body, "P000007", "")) // a redirection repeats the path
	}
}

// untouched ends a service of which the store must not have been asked.
func untouched(t *testing.T, r *running) {
	t.Helper()
	report, err := r.report(t)
	if err != nil || report.StoreCalls != 0 || report.Requests.Error != 0 {
		t.Errorf("%v; the store was asked %d times, %+v", err, report.StoreCalls, report.Requests)
	}
}

func TestNoRouteIsOpenWithoutAToken(t *testing.T) {
	for _, pattern := range patterns.Names() {
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			c := quick()
			c.Pattern.Name = pattern
			r := start(t, c)
			for _, path := range paths(t, r) {
				open, _, _ := strings.Cut(path, "?")
				for _, method := range methods {
					what := method + " " + path
					got := parsed(t, answers(t, r.addr, what+" HTTP/1.1\r\nHost: "+r.addr+"\r\nContent-Type: application/json\r\nContent-Length: 19\r\nConnection: close\r\n\r\n"+`{"ids":["P000007"]}`, false), method)
					if len(got) == 0 {
						t.Errorf("%s: no answer", what)
					}
					closed(t, what, got, slices.Contains(public, open) && (method == "GET" || method == "HEAD") || path == "*" && method == "OPTIONS")
				}
			}
			untouched(t, r)
		})
	}
}

// disguises are ways to write that path which servers and proxies have read differently.
func disguises(path string) []string {
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	all := []string{
		"/" + path, path + "/", path + "//", "/." + path, "/x/.." + path, "/livez/.." + path, "/livez/%2e%2e" + path, "/livez/%2E%2E" + path, "/livez%2f.." + path, "/livez/..%2f" + path[1:], "/livez/..;" + path,
		"/" + first + "//" + rest, "/" + first + "/./" + rest, "/" + first + "/%2e/" + rest, "/" + first + "/x/../" + rest, "/" + first + "/x/%2e%2e/" + rest, "/" + first + "%2f" + rest, `/` + first + `\` + rest, "/" + first + "/" + rest + "%00", "/" + first + "/" + rest + "%20",
		"/" + first + "/" + rest + "%23", path + "#/livez", path + "?/livez", path + ";a=b", path + ".json", path + "%3f", path + "%0a", path + "%0d%0aX:%20y", path + "/../../../livez/../" + path, strings.ToUpper(path), "/" + strings.ToUpper(first) + "/" + rest, strings.ToLower(path),
		strings.ReplaceAll(path, "a", "%61"), strings.ReplaceAll(path, "/", "%2F"), strings.ReplaceAll(path, "/", "%252F"), strings.ReplaceAll(path, "P", "%50"), strings.ReplaceAll(path, "P", "%c1%90"), strings.ReplaceAll(path, "P", "\uff30"),
		"http://127.0.0.1" + path, "http://livez" + path, "https://metadata" + path, "HTTP://127.0.0.1/livez/.." + path, "http://user:pass@127.0.0.1" + path, "//127.0.0.1" + path, "file://" + path, path[1:], "?" + path, "*" + path,
	}
	return all
}

// pretences are headers that have talked proxies and frameworks into something.
func pretences(path string) []string {
	return []string{
		"", "X-HTTP-Method-Override: GET", "X-HTTP-Method: GET", "X-Method-Override: GET", "X-Original-URL: " + path, "X-Rewrite-URL: " + path, "X-Forwarded-Uri: " + path, "X-Forwarded-Prefix: " + path, "X-Forwarded-For: 127.0.0.1", "X-Real-IP: 127.0.0.1",
		"Forwarded: for=127.0.0.1;host=localhost;proto=https", "X-Forwarded-Host: localhost", "X-Forwarded-Proto: https", "X-Remote-User: doctor-1", "X-Forwarded-User: doctor-1", "X-Auth-Request-User: doctor-1", "X-Client-Cert: x", "X-Role: clinician", "Remote-User: root",
		"Authorization:", "Authorization: Bearer", "Authorization: Bearer null", "Authorization: Bearer undefined", "Authorization: Basic Og==", "Authorization: Negotiate x", "Authorization: bearer\tx", "Cookie: access_token=x; role=clinician", "Proxy-Authorization: Bearer x",
		"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA", "Upgrade: websocket\r\nConnection: Upgrade", "Connection: Authorization", "Expect: 100-continue", "Range: bytes=0-", "If-None-Match: *", "X-Request-Id: ../../x", "Spillway-Deadline: 100000", "Content-Type: application/json",
	}
}

func TestNoDisguiseOpensARoute(t *testing.T) {
	c := quick()
	c.Admin.Addr = "127.0.0.1:0"
	r := start(t, c)
	for _, path := range []string{"/api/v1/patients/P000007", "/fhir/Patient/P000007", "/fhir/Patient/$everything", "/debug/pprof/heap", "/metrics"} {
		for _, disguise := range disguises(path) {
			for _, method := range []string{"GET", "POST", "CONNECT"} {
				what := method + " " + disguise
				got := parsed(t, answers(t, r.addr, what+" HTTP/1.1\r\nHost: "+r.addr+"\r\nConnection: close\r\n\r\n", false), method)
				closed(t, what, got, strings.HasPrefix(disguise, "?")) // the index, with a query
			}
		}
		for _, header := range pretences(path) {
			for _, at := range []string{path, "/livez", "/"} {
				what := "GET " + at + " with " + header
				closed(t, what, parsed(t, answers(t, r.addr, "GET "+at+" HTTP/1.1\r\nHost: "+r.addr+"\r\n"+header+"\r\nConnection: close\r\n\r\n", false), "GET"), at != path)
			}
		}
		for _, host := range []string{"", "localhost", "admin", r.admin, "127.0.0.1:1", "/", "a b", "x" + path, "livez", "[::1]", "\x00"} {
			closed(t, "host "+host, parsed(t, answers(t, r.addr, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n", false), "GET"), false)
		}
		for _, old := range []string{"GET " + path + " HTTP/1.0\r\n\r\n", "GET " + path + "\r\n", "GET " + path + " HTTP/0.9\r\n\r\n", "GET " + path + " HTTP/2.0\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET\t" + path + "\tHTTP/1.1\r\nHost: x\r\n\r\n", "\r\n\r\nGET " + path + " HTTP/1.1\nHost: x\nConnection: close\n\n"} {
			closed(t, old, parsed(t, answers(t, r.addr, old, true), "GET"), false)
		}
	}
	untouched(t, r)
}

// smuggled are bodies and lengths that have made two servers see different requests. Each
// holds a second request in the place of %s.
var smuggled = []string{
	"POST /api/v1/patients:batch HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}%s", // pipelined
	"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n%s",                                                                                                       // behind what is public
	"GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n%s",                                                             // two lengths
	"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 5, 0\r\n\r\n%s",                                                                              //
	"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: +0\r\n\r\n%s",                                                                                //
	"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 0x0\r\n\r\n%s",                                                                               //
	"POST /fhir/Patient/_search HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s",                           // length and chunks
	"POST /fhir/Patient/_search HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 400\r\n\r\n0\r\n\r\n%s",                         //
	"POST /fhir/Patient/_search HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\nContent-Length: 0\r\n\r\n%s",                                   // chunks that are none
	"POST /fhir/Patient/_search HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\nContent-Length: 0\r\n\r\n%s",                          //
	"POST /fhir/Patient/_search HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\nContent-Length: 0\r\n\r\n%s",                                   //
	"POST /fhir/Patient/_search HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\x0bchunked\r\nContent-Length: 0\r\n\r\n%s",                                 //
	"POST /fhir/Patient/_search HTTP/1.1\r\nHost: x\r\n Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n%s",                                   // a folded line
	"POST /fhir/Patient/_search HTTP/1.1\r\nHost: x\r\nX: y\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n%s",         //
	"POST /fhir/Patient/_search HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0;x=\r\n\r\n%s",                                             // an extension of a chunk
	"POST /fhir/Patient/_search HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n%s",                                    // a size that overflows
	"POST /fhir/Patient/_search HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n0\r\n\r\n%s", // chunks before there were such
	"POST /livez HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 300\r\n\r\n%s",                                                       // a body that was not asked for
	"GET /livez HTTP/1.1\r\nHost: x\r\nX: a\nGET /livez HTTP/1.1\r\nHost: x\r\n\r\n%s",                                                               // bare line ends
	"GET /livez HTTP/1.1\rHost: x\r\r%s", //
}

func TestNoRequestIsSmuggled(t *testing.T) {
	r := start(t, quick())
	for _, first := range smuggled {
		for _, path := range []string{"/api/v1/patients/P000007", "/fhir/Patient/P000007"} {
			text := fmt.Sprintf(first, "GET "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", false)
			got := answers(t, r.addr, text, true)
			about(7).nowhere(t, text, got)
			if n := strings.Count(got, "HTTP/1.1 "); n == 0 || n > 3 { // an interim answer and two
				t.Errorf("%q: %d answers: %s", text, n, got)
			}
		}
	}
	untouched(t, r)
}

// Whoever asks next on a connection is not the one who asked before.
func TestATokenIsForOneRequestOfAConnection(t *testing.T) {
	r := start(t, quick())
	with := asked(t.Context(), "http://x").Header.Get("Authorization")
	for _, path := range []string{"/api/v1/patients/P000007", "/fhir/Patient/P000007"} {
		request := func(header string) string { return "GET " + path + " HTTP/1.1\r\nHost: x\r\n" + header + "\r\n" }
		got := parsed(t, answers(t, r.addr, request("Authorization: "+with+"\r\n")+request("")+request("Authorization: "+with+"\r\n")+request("Connection: close\r\n"), false), "GET")
		var status []int
		for _, e := range got {
			status = append(status, e.status)
		}
		if !slices.Equal(status, []int{200, 401, 200, 401}) {
			t.Errorf("%s: %v", path, status)
		}
	}
}

// What the admin listener tells is about the service, whoever asks, and its pages cannot
// be made to ask the store for anybody.
func TestTheAdminListenerTellsOfNobody(t *testing.T) {
	c := quick()
	c.Admin.Addr = "127.0.0.1:0"
	r := start(t, c)
	status := regexp.MustCompile(`^HTTP/1\.1 [245]`)
	for _, path := range append(paths(t, r), disguises("/api/v1/patients/P000007")...) {
		if strings.HasPrefix(path, "/debug/pprof/") {
			continue // takes its time, and is looked at elsewhere
		}
		for _, method := range methods {
			what := method + " " + path
			got := answers(t, r.admin, what+" HTTP/1.1\r\nHost: "+r.admin+"\r\nConnection: close\r\n\r\n", false)
			about(7).nowhere(t, what, strings.ReplaceAll(got, "P000007", ""))
			if !status.MatchString(got) && !strings.HasPrefix(got, "HTTP/1.1 3") {
				t.Errorf("%s: %.100q", what, got)
			}
		}
	}
	untouched(t, r)
}
