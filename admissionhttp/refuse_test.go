package admissionhttp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/limiter"
)

func TestWhatARefusalSays(t *testing.T) {
	for _, reason := range spillway.Reasons() {
		w := httptest.NewRecorder()
		w.Header().Set("ETag", "of what did not happen")
		w.Header().Set("Content-Length", "7")      // of what did not happen
		w.Header().Set("Content-Encoding", "gzip") // of a middleware that compresses the refusal, too
		rej := &spillway.Rejection{Reason: reason, Cause: "a signal's name", RetryAfter: 10 * time.Second}
		if !admissionhttp.Refuse(w, httptest.NewRequest(http.MethodGet, "/", nil), fmt.Errorf("wrapped: %w", rej)) {
			t.Fatal(reason)
		}
		want, kind := 503, "#temporary-reduced-capacity"
		if reason == spillway.ReasonQuota {
			want, kind = 429, "#quota-exceeded"
		}
		var p struct {
			Type, Title, Detail, Reason string
			Status                      int
		}
		check(t, json.Unmarshal(w.Body.Bytes(), &p))
		after, err := strconv.Atoi(w.Header().Get("Retry-After"))
		if w.Code != want || p.Status != want || !strings.HasSuffix(p.Type, kind) || p.Title == "" || p.Detail == "" ||
			p.Reason != reason.String() || w.Header().Get(admissionhttp.HeaderReason) != p.Reason ||
			err != nil || after < 1 || after > 20 || w.Header().Get("Cache-Control") != "no-store" ||
			w.Header().Get("ETag") != "" || w.Header().Get("Content-Length") != "" || w.Header().Get("Content-Encoding") != "gzip" {
			t.Errorf("%v: %d %v %s", reason, w.Code, w.Header(), w.Body)
		}
		if strings.Contains(w.Body.String(), "signal's name") {
			t.Error("the name of a signal is the service's own business")
		}
		stops := reason == spillway.ReasonDraining || reason == spillway.ReasonClosed
		if closes := w.Header().Get("Connection") == "close"; closes != stops {
			t.Errorf("%v: closes %v", reason, closes)
		}
	}
}

// A client that a stopping instance refuses must leave its connection. Over HTTP/2 the client once
// stayed, and sent all its requests to the stopping instance.
func TestAnInstanceThatStopsSendsItsClientsAway(t *testing.T) {
	for major, want := range map[int]bool{1: true, 2: true, 3: false} { // in HTTP/3 the header would be malformed
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.ProtoMajor, r.ProtoMinor = major, 0
		w := httptest.NewRecorder()
		admissionhttp.Refuse(w, r, &spillway.Rejection{Reason: spillway.ReasonDraining})
		if got := w.Header().Get("Connection") == "close"; got != want {
			t.Errorf("HTTP/%d: closes %v", major, got)
		}
		w = httptest.NewRecorder()
		admissionhttp.Refuse(w, r, &spillway.Rejection{Reason: spillway.ReasonQueueFull})
		if w.Header().Get("Connection") != "" {
			t.Errorf("HTTP/%d: one that is full closes", major)
		}
	}
	for _, h2 := range []bool{false, true} {
		lim := one(t)
		s := serve(t, middleware(t, admissionhttp.Config{Limiter: lim})(ok), func(s *httptest.Server) { s.EnableHTTP2 = h2 })
		connections := 0
		ask := func() int {
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
				if !i.Reused {
					connections++
				}
			}})
			r := must(http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil))
			resp := must(s.Client().Do(r))
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if (resp.ProtoMajor == 2) != h2 {
				t.Fatal(resp.Proto)
			}
			return resp.StatusCode
		}
		for range 3 {
			if status := ask(); status != http.StatusOK || connections != 1 {
				t.Fatalf("%d over %d connections", status, connections)
			}
		}
		check(t, lim.Drain(t.Context()))
		for n := 0; connections == 1; n++ { // HTTP/2 may send GOAWAY a moment after the answer
			if status := ask(); status != http.StatusServiceUnavailable {
				t.Fatal(status)
			}
			if n == 10_000 {
				t.Fatalf("HTTP/2 %v: %d refusals over one connection", h2, n)
			}
		}
	}
}

func TestWhichErrorsAreRefusals(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		reason string
	}{
		{nil, 0, ""},
		{errors.New("another"), 0, ""},
		{(*spillway.Rejection)(nil), 0, ""},
		{spillway.ErrRejected, 503, "rejected"},
		{&spillway.Rejection{Reason: 200}, 503, "rejected"},
		{context.DeadlineExceeded, 503, "deadline_too_close"},
		{context.Canceled, 499, "cancelled"},
	} {
		w := httptest.NewRecorder()
		refused := admissionhttp.Refuse(w, httptest.NewRequest(http.MethodGet, "/", nil), c.err)
		after := w.Header().Get("Retry-After")
		if refused != (c.status != 0) || refused && w.Code != c.status || w.Header().Get(admissionhttp.HeaderReason) != c.reason {
			t.Errorf("%v: %v %d, %v", c.err, refused, w.Code, w.Header())
		}
		if hint := after != "" && after != "0"; hint != (c.status == 503) {
			t.Errorf("%v: Retry-After %s", c.err, after)
		}
	}
}

func TestABodyOfOnesOwn(t *testing.T) {
	lim := one(t)
	_, _ = lim.Acquire(t.Context())
	h := middleware(t, admissionhttp.Config{Limiter: lim, Refusal: func(w http.ResponseWriter, _ *http.Request, status int) {
		w.Header().Set("Content-Type", "application/fhir+json")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "throttled, %s", w.Header().Get(admissionhttp.HeaderReason))
	}})(ok)
	w := get(h, "/")
	if w.Code != 503 || w.Body.String() != "throttled, queue_full" || w.Header().Get("Retry-After") == "" || w.Header().Get("Content-Type") != "application/fhir+json" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

// refusing returns a server without a free slot, whose handler must not run.
func refusing(t *testing.T, h2 bool) *httptest.Server {
	lim := one(t)
	_, _ = lim.Acquire(t.Context())
	return serve(t, middleware(t, admissionhttp.Config{Limiter: lim})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the handler runs")
	})), func(s *httptest.Server) { s.EnableHTTP2 = h2 })
}

// A refused request whose body has not arrived is answered at once. The connection is kept only if
// the rest of the body is short and its length known.
func TestTheBodyOfARefusedRequest(t *testing.T) {
	s := refusing(t, false)
	for name, c := range map[string]struct {
		head, body string
		closes     bool
	}{
		"none":          {head: ""},
		"short":         {head: "Content-Length: 5\r\n", body: "hello"},
		"long, unsent":  {head: "Content-Length: 1000000000\r\n", closes: true},
		"without end":   {head: "Transfer-Encoding: chunked\r\n", body: "5\r\nhello\r\n", closes: true},
		"expected":      {head: "Content-Length: 5\r\nExpect: 100-continue\r\n", closes: true},
		"expected long": {head: "Content-Length: 1000000000\r\nExpect: 100-continue\r\n", closes: true},
	} {
		t.Run(name, func(t *testing.T) {
			conn := must(net.Dial("tcp", s.Listener.Addr().String()))
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(time.Minute)) // only bounds a test that fails
			_, _ = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\n%s\r\n%s", c.head, c.body)
			in := bufio.NewReader(conn)
			resp := must(http.ReadResponse(in, nil))
			if resp.StatusCode != 503 || resp.Close != c.closes {
				t.Errorf("%d, closes: %v", resp.StatusCode, resp.Close)
			}
			if body, err := io.ReadAll(resp.Body); err != nil || !json.Valid(body) {
				t.Errorf("%q %v", body, err)
			}
			if !c.closes { // the next bytes on the connection are read as a request
				_, _ = fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
				if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != 503 {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestAShortBodyThatDoesNotComeDelaysNoAnswerForLong(t *testing.T) {
	s := refusing(t, false)
	conn := must(net.Dial("tcp", s.Listener.Addr().String()))
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	_, _ = fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nnot all")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != 503 || !resp.Close {
		t.Fatalf("%+v %v", resp, err)
	}
}

// endless is a body without an end, which counts the bytes read.
type endless struct{ closed chan struct{} }

func (e *endless) Read(p []byte) (int, error) {
	select {
	case <-e.closed:
		return 0, io.EOF
	default:
		return len(p), nil
	}
}

func (e *endless) Close() error {
	select {
	case <-e.closed:
	default:
		close(e.closed)
	}
	return nil
}

func TestAnEndlessBodyIsRefusedInHTTP2(t *testing.T) {
	s := refusing(t, true)
	for range 3 { // on one connection
		r := must(http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, &endless{make(chan struct{})}))
		resp := must(s.Client().Do(r))
		body, err := io.ReadAll(resp.Body)
		if resp.Body.Close(); resp.StatusCode != 503 || resp.ProtoMajor != 2 || !json.Valid(body) || err != nil {
			t.Fatalf("%d %q %v", resp.StatusCode, body, err)
		}
	}
}

// Admission comes before the body: a client that waits for 100 Continue gets it after its request
// was admitted.
func TestABodyIsAskedForAfterAdmission(t *testing.T) {
	lim := must(limiter.New(limiter.Config{}))
	s := serve(t, middleware(t, admissionhttp.Config{Limiter: lim})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	})))
	r := must(http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, bytes.NewReader([]byte("hello"))))
	r.Header.Set("Expect", "100-continue")
	c := s.Client()
	c.Transport.(*http.Transport).ExpectContinueTimeout = time.Hour
	resp := must(c.Do(r))
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); string(body) != "hello" || err != nil {
		t.Errorf("%q %v", body, err)
	}
}
