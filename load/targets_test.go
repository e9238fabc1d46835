package load

import (
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spillway-go/spillway/load/loadgen"
)

// fileOf is what a file of that name holds.
func fileOf(name string) ([]byte, error) {
	if strings.HasPrefix(name, "absent") {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return []byte("text of " + name), nil
}

func TestTargetsAreReadAsVegetaWritesThem(t *testing.T) {
	const text = "\ufeff# two hosts\r\nGET http://a:1/x?y=1\r\nAccept: text/html\r\naccept: a/b:c\n# a comment in it\nX-Empty:\nPOST https://b/\nContent-Type: application/json\n@body.json\n\n\n  DELETE   http://a:1/z  \n\nPUT http://a:1/w\n@body.json"
	want := []Target{
		{Method: "GET", URL: "http://a:1/x?y=1", Header: http.Header{"Accept": {"text/html", "a/b:c"}, "X-Empty": {""}}},
		{Method: "POST", URL: "https://b/", Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte("text of body.json")},
		{Method: "DELETE", URL: "http://a:1/z"},
		{Method: "PUT", URL: "http://a:1/w", Body: []byte("text of body.json")},
	}
	reads := 0
	got, err := ReadTargets([]byte(text), func(name string) ([]byte, error) {
		reads++
		return fileOf(name)
	})
	if err != nil || !reflect.DeepEqual(got, want) || reads != 1 {
		t.Errorf("%v, a file is read %d times\n%+v\nwant\n%+v", err, reads, got, want)
	}
	for text, says := range map[string]string{
		"":                               "no targets: want lines such as GET http://",
		"# nothing\n\n":                  "no targets",
		"http://a/":                      "line 1 is \"http://a/\": want a method and a URL",
		"get http://a/":                  "line 1 is",
		"GET http://a/x HTTP/1.1":        "line 1: URL \"http://a/x HTTP/1.1\": want nothing behind it, and %20",
		"GET /x":                         "line 1: URL \"/x\": want http://host",
		"GET http://a/\n\nAccept: x":     "line 3 is \"Accept: x\": want a method",
		"GET http://a/\nAccept":          "line 2 is \"Accept\": want a header",
		"GET http://a/\n@absent":         "line 2: the body: absent: file does not exist",
		"GET http://a/\n@b\nAccept: x":   "line 3 is",
		`{"method":"GET","url":"http:"}`: "line 1 is",
	} {
		if _, err := ReadTargets([]byte(text), fileOf); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

func FuzzReadTargets(f *testing.F) {
	f.Add("GET http://a/\nA: b\n@c\n\nPOST https://b/x\n# d")
	f.Add("GET http://a/{{n}}\n: b\n@\n")
	f.Fuzz(func(t *testing.T, text string) {
		targets, err := ReadTargets([]byte(text), fileOf)
		if (err == nil) != (len(targets) > 0) || err != nil && strings.Contains(err.Error(), "\n") {
			t.Fatalf("%d targets, %v", len(targets), err)
		}
		var again strings.Builder // the same list, written out
		for _, one := range targets {
			fmt.Fprintf(&again, "%s %s\n", one.Method, one.URL)
			for name, values := range one.Header {
				for _, value := range values {
					fmt.Fprintf(&again, "%s: %s\n", name, value)
				}
			}
			if one.Body != nil {
				fmt.Fprintf(&again, "@%s\n", strings.TrimPrefix(string(one.Body), "text of "))
			}
		}
		if err == nil {
			if same, err := ReadTargets([]byte(again.String()), fileOf); err != nil || !reflect.DeepEqual(same, targets) {
				t.Errorf("%v\n%+v\n%+v", err, targets, same)
			}
		}
		s := Spec{Targets: targets, Clients: 1, Interval: 1e9, MaxInFlight: 1}
		if p, err := s.Plan(); err == nil {
			p.Close()
		}
	})
}

func TestTargetsAreAskedInTurn(t *testing.T) {
	arrived := make(chan string, 10)
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		arrived <- fmt.Sprint(r.Method, " ", r.Host, r.URL, " ", r.Header.Get("X-All"), r.Header.Get("X-Own"), " ", string(body))
	})
	one, other := httptest.NewServer(handler), httptest.NewServer(handler)
	defer one.Close()
	defer other.Close()
	a, b := strings.TrimPrefix(one.URL, "http://"), strings.TrimPrefix(other.URL, "http://")
	targets, err := ReadTargets([]byte("GET http://"+a+"/1\nGET http://"+b+"/{{n}}\nx-own: o\nX-All: mine\nGET http://"+a+"/2\nPOST http://"+a+"/3\n@f\n"), fileOf)
	if err != nil {
		t.Fatal(err)
	}
	p := plan(t, Spec{Targets: targets, Request: loadgen.HTTPConfig{Header: http.Header{"X-All": {"all"}}}, Clients: 1, Requests: 6, Interval: 1e9, MaxInFlight: 1})
	if len(p.Targets) != 3 {
		t.Errorf("%d groups of targets, want 3: two requests differ in the path alone", len(p.Targets))
	}
	r, err := loadgen.Run(t.Context(), p.Run)
	if err != nil || r.Outcomes[loadgen.OK].Count != 6 {
		t.Fatalf("%v, %v", err, p.FirstError())
	}
	for _, want := range []string{"GET " + a + "/1 all ", "GET " + b + "/%7B%7Bn%7D%7D mineo ", "GET " + a + "/2 all ", "POST " + a + "/3 all text of f", "GET " + a + "/1 all ", "GET " + b + "/%7B%7Bn%7D%7D mineo "} {
		if got := <-arrived; got != want {
			t.Errorf("%q arrived, want %q", got, want)
		}
	}
}

// Regression: each of many targets that differ in a header or in the body had connections of its own.
func TestManyTargetsShareTheConnectionsOfTheClients(t *testing.T) {
	var opened atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	var text strings.Builder
	for i := range 200 {
		fmt.Fprintf(&text, "POST %s/%d\nX-Id: %d\n@f%d\n", server.URL, i, i, i%3)
	}
	targets, err := ReadTargets([]byte(text.String()), fileOf)
	if err != nil {
		t.Fatal(err)
	}
	targets[0].Body = make([]byte, 1<<20) // goes through net/http
	for _, redirects := range []int{0, 1} {
		opened.Store(0)
		p := plan(t, Spec{Targets: targets, Clients: 2, Requests: 600, Request: loadgen.HTTPConfig{Redirects: redirects}, Interval: 1e9, MaxInFlight: 1})
		r, err := loadgen.Run(t.Context(), p.Run)
		if err != nil || r.Outcomes[loadgen.OK].Count != 600 {
			t.Fatalf("%v, %v", err, p.FirstError())
		}
		if n := opened.Load(); n > 4 {
			t.Errorf("2 clients opened %d connections to 200 targets", n)
		}
		if sent, received := p.Traffic(); sent < 3<<20 || sent > 4<<20 || received == 0 {
			t.Errorf("%d bytes were sent and %d received", sent, received)
		}
	}
}
