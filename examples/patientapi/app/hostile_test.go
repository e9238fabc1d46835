package app

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
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
	require.NoError(t, json.Unmarshal([]byte(text), &doc))
	for path := range doc.Paths {
		all = append(all, strings.ReplaceAll(path, "{id}", "P000007"), strings.ReplaceAll(path, "{id}", "P000007")+"?id=P000007")
	}
	_, text = r.get(t, "/fhir/metadata")
	var capabilities struct {
		Rest []struct{ Resource []struct{ Type string } }
	}
	require.NoError(t, json.Unmarshal([]byte(text), &capabilities))
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
	require.NoError(t, err)
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
	r := start(t, quick())
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
}

// smuggled are bodies and lengths that have made two servers see different requests. Each
// holds a second request in the place of %s.
var smuggled = []string{
	"POST /api/v1/patients:batch HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}%s", // pipelined
	"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n%s",                                                                                               // behind what is public
	"GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n%s",                                                     // two lengths
	"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 5, 0\r\n\r\n%s",                                                                      //
	"POST /fhir/Patient/_search HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s",                   // length and chunks
	"POST /fhir/Patient/_search HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 400\r\n\r\n0\r\n\r\n%s",                 //
	"POST /fhir/Patient/_search HTTP/1.1\r\nHost: x\r\n Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n%s",                           // a folded line
	"POST /fhir/Patient/_search HTTP/1.1\r\nHost: x\r\nX: y\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n%s", //
	"POST /fhir/Patient/_search HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n%s",                            // a size that overflows
	"POST /livez HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 300\r\n\r\n%s",                                               // a body that was not asked for
	"GET /livez HTTP/1.1\r\nHost: x\r\nX: a\nGET /livez HTTP/1.1\r\nHost: x\r\n\r\n%s",                                                       // bare line ends
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
