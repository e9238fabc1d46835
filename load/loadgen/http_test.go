package loadgen

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// newServer starts a server on loopback that counts its connections.
func newServer(t *testing.T, withTLS bool, h http.HandlerFunc) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	var connections atomic.Int64
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true // for clients over TLS that ask for it
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	if withTLS {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s, &connections
}

func newHTTP(t *testing.T, cfg HTTPConfig) *HTTP {
	t.Helper()
	h := must(NewHTTP(cfg))(t)
	t.Cleanup(h.Close)
	return h
}

func TestHTTPAnswersBecomeOutcomes(t *testing.T) {
	s, _ := newServer(t, false, func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; path {
		case "/hang":
			<-r.Context().Done()
		case "/hang-in-body":
			io.WriteString(w, "half")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case "/cut":
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "half")
			panic(http.ErrAbortHandler)
		default:
			status, _ := strconv.Atoi(path[1:])
			w.WriteHeader(status)
		}
	})
	for path, want := range map[string]Outcome{
		"/200": OK, "/201": OK, "/204": OK,
		"/429": Rejected, "/503": Rejected,
		"/302": Error, "/400": Error, "/404": Error, "/500": Error, "/504": Error,
		"/cut":  Error,
		"/hang": Timeout, "/hang-in-body": Timeout,
	} {
		timeout := time.Minute
		if want == Timeout {
			timeout = 50 * time.Millisecond
		}
		byConfig := newHTTP(t, HTTPConfig{URL: s.URL + path, Timeout: timeout})
		if got := byConfig.Do(t.Context(), 0); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
		if err := byConfig.FirstError(); (err != nil) != (want == Error) {
			t.Errorf("%s: first error %v", path, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		if got := newHTTP(t, HTTPConfig{URL: s.URL + path}).Do(ctx, 0); got != want {
			t.Errorf("%s with a context: %v, want %v", path, got, want)
		}
		cancel()
	}
}

func TestAnHTTPServerThatIsNotThereIsAnErrorThatSaysSo(t *testing.T) {
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	addr := l.Addr().String()
	l.Close()
	h := newHTTP(t, HTTPConfig{URL: "http://" + addr})
	if got := h.Do(t.Context(), 0); got != Error || h.FirstError() == nil {
		t.Errorf("%v, first error %v", got, h.FirstError())
	}
	if err := h.Reach(t.Context()); err == nil || !strings.Contains(err.Error(), addr) {
		t.Errorf("Reach: %v, want an error with the address", err)
	}
}

func TestHTTPRequestsArriveAsConfigured(t *testing.T) {
	type seen struct{ method, host, path, body, header, auth string }
	requests := make(chan seen, 1)
	s, connections := newServer(t, false, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		user, password, _ := r.BasicAuth()
		requests <- seen{r.Method, r.Host, r.URL.RequestURI(), string(body), strings.Join(r.Header["X-Test"], ","), user + password}
	})
	address := strings.TrimPrefix(s.URL, "http://")
	for _, c := range []struct {
		cfg  HTTPConfig
		want seen
	}{
		{HTTPConfig{URL: s.URL}, seen{method: "GET", host: address, path: "/"}},
		{HTTPConfig{URL: s.URL + "/a?b=c", Body: []byte("text")}, seen{method: "POST", host: address, path: "/a?b=c", body: "text"}},
		{HTTPConfig{URL: s.URL, Method: "PUT", Header: http.Header{"x-test": {"1", "2"}, "host": {"other"}}},
			seen{method: "PUT", host: "other", path: "/", header: "1,2"}},
		{HTTPConfig{URL: "http://me:secret@" + address}, seen{method: "GET", host: address, path: "/", auth: "mesecret"}},
		{HTTPConfig{URLFor: func(n uint64) string { return fmt.Sprintf("%s/%d", s.URL, n) }}, seen{method: "GET", host: address, path: "/7"}},
	} {
		h := newHTTP(t, c.cfg)
		if o := h.Do(t.Context(), 7); o != OK {
			t.Fatalf("%v: %v", o, h.FirstError())
		}
		if got := <-requests; got != c.want {
			t.Errorf("arrived as %+v, want %+v", got, c.want)
		}
		if err := h.Reach(t.Context()); err != nil {
			t.Error(err)
		}
		if len(requests) > 0 {
			t.Error("Reach sent a request")
		}
	}
	if connections.Load() == 0 {
		t.Error("no connection counted")
	}
}

func TestHTTPReusesOneConnectionPerClientWhateverTheAnswer(t *testing.T) {
	const clients = 8
	body := strings.Repeat("x", 100_000) // more than one read
	s, connections := newServer(t, false, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if n, _ := strconv.Atoi(r.URL.Path[1:]); n%3 == 0 {
			w.WriteHeader(503)
		} else if n%3 == 1 {
			w.WriteHeader(500)
		}
		io.WriteString(w, body)
	})
	h := newHTTP(t, HTTPConfig{
		Body:   []byte("question"),
		URLFor: func(n uint64) string { return fmt.Sprintf("%s/%d", s.URL, n) },
		Check: func(n uint64, status int, got []byte) error {
			if n%3 != 2 || status != 200 || string(got) != body {
				return fmt.Errorf("request %d: status %d and %d bytes", n, status, len(got))
			}
			return nil
		},
	})
	r := mustRun(t, t.Context(), Config{Target: h, Closed: &Closed{Clients: clients, Requests: 600}})
	if r.Outcomes[OK].Count != 200 || r.Outcomes[Rejected].Count != 200 || r.Outcomes[Error].Count != 200 {
		t.Errorf("ok %d, rejected %d, error %d: %v", r.Outcomes[OK].Count, r.Outcomes[Rejected].Count, r.Outcomes[Error].Count, h.FirstError())
	}
	// net/http may dial one more than it needs when an answer frees a connection meanwhile.
	if n := connections.Load(); n > 2*clients {
		t.Errorf("%d connections for %d clients", n, clients)
	}
}

func TestMaxConnsBoundsTheConnections(t *testing.T) {
	s, connections := newServer(t, false, func(http.ResponseWriter, *http.Request) {})
	h := newHTTP(t, HTTPConfig{URL: s.URL, MaxConns: 2})
	r := mustRun(t, t.Context(), Config{Target: h, Closed: &Closed{Clients: 20, Requests: 200}})
	if n := connections.Load(); n > 2 || r.Outcomes[OK].Count != 200 {
		t.Errorf("%d connections, %d ok: %v", n, r.Outcomes[OK].Count, h.FirstError())
	}
}

func TestAFailedCheckIsAnErrorWhateverItWraps(t *testing.T) {
	s, _ := newServer(t, false, func(http.ResponseWriter, *http.Request) {})
	h := newHTTP(t, HTTPConfig{URL: s.URL, Check: func(uint64, int, []byte) error { return context.DeadlineExceeded }})
	if o := h.Do(t.Context(), 0); o != Error || !strings.Contains(h.FirstError().Error(), "check") {
		t.Errorf("%v, %v", o, h.FirstError())
	}
}

func TestHTTPSNeedsTrust(t *testing.T) {
	s, _ := newServer(t, true, func(http.ResponseWriter, *http.Request) {})
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	trusting := newHTTP(t, HTTPConfig{URL: s.URL, TLS: &tls.Config{RootCAs: roots}})
	r := mustRun(t, t.Context(), Config{Target: trusting, Open: Poisson(500, 100*time.Millisecond, 3)})
	if r.Outcomes[OK].Count != r.Offered || r.Offered == 0 {
		t.Errorf("%d of %d ok: %v", r.Outcomes[OK].Count, r.Offered, trusting.FirstError())
	}
	strange := newHTTP(t, HTTPConfig{URL: s.URL, TLS: &tls.Config{RootCAs: x509.NewCertPool()}})
	if o := strange.Do(t.Context(), 0); o != Error {
		t.Errorf("an unknown certificate: %v", o)
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](strange.FirstError()); !ok {
		t.Errorf("an unknown certificate: %v", strange.FirstError())
	}
}

func TestHTTP2IsSpokenWhenAsked(t *testing.T) {
	var other atomic.Int64
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			other.Add(1)
		}
	})
	secure := httptest.NewUnstartedServer(handler)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	plain := httptest.NewUnstartedServer(handler)
	plain.Config.Protocols = new(http.Protocols)
	plain.Config.Protocols.SetUnencryptedHTTP2(true)
	plain.Start()
	defer plain.Close()
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	for _, url := range []string{secure.URL, plain.URL} {
		h := newHTTP(t, HTTPConfig{URL: url, HTTP2: true, TLS: &tls.Config{RootCAs: roots}})
		r := mustRun(t, t.Context(), Config{Target: h, Closed: &Closed{Clients: 4, Requests: 40}})
		if r.Outcomes[OK].Count != 40 || other.Load() > 0 {
			t.Errorf("%s: %d ok, %d not over HTTP/2: %v", url, r.Outcomes[OK].Count, other.Load(), h.FirstError())
		}
		h.Close()
	}
}

func TestABadHTTPConfigIsOneClearLine(t *testing.T) {
	const good = "http://127.0.0.1:1"
	for want, cfg := range map[string]HTTPConfig{
		`URL "": want http://`:                 {},
		`URL "localhost:80": want http://`:     {URL: "localhost:80"},
		`URL "127.0.0.1:80/x": want http://`:   {URL: "127.0.0.1:80/x"},
		`URL "ftp://x": want`:                  {URL: "ftp://x"},
		`URL "http://": want`:                  {URL: "http://"},
		`URL "http://x:port"`:                  {URL: "http://x:port"},
		`URL "http://\x7f": net/url: inva`:     {URL: "http://\x7f"},
		`URL "relative": want`:                 {URLFor: func(uint64) string { return "relative" }},
		`method "GE T"`:                        {URL: good, Method: "GE T"},
		`header name "a b"`:                    {URL: good, Header: http.Header{"a b": {"c"}}},
		`header a: its value "b\r\nc"`:         {URL: good, Header: http.Header{"a": {"b\r\nc"}}},
		"the proxy: want a URL such as http:":  {URL: good, Proxy: "me:secret@host"},
		"no proxy passes HTTP/2 on to an http": {URL: good, Proxy: good, HTTP2: true},
		"Dial and Proxy exclude each other":    {URL: good, Proxy: good, Dial: new(net.Dialer).DialContext},
		"MaxConns -1 and Timeout 0s must no":   {URL: good, MaxConns: -1},
		"belongs behind the host":              {URL: "http://{{n}}", Data: &Data{}},
		`no column "id": want {{n}}`:           {URL: good + "/{{.id}}", Data: &Data{}},
		`"{{a b}}" is no placeholder`:          {URL: good, Body: []byte("{{a b}}"), Data: &Data{}},
		"row 2 has a value with a control":     {URL: good, Header: http.Header{"A": {"{{.x}}"}}, Data: &Data{names: []string{"x"}, rows: [][]string{{"1"}, {"1\r\n2"}}}},
	} {
		_, err := NewHTTP(cfg)
		if err == nil || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\r\n") {
			t.Errorf("error %v, want one line with %s", err, want)
		}
	}
}
