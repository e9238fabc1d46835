package loadgen

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

func TestRedirectsAreFollowedOnlyAsFarAsAsked(t *testing.T) {
	var arrived atomic.Int64
	s, _ := newServer(t, false, func(w http.ResponseWriter, r *http.Request) {
		arrived.Add(1)
		var left int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &left); err != nil || left == 0 {
			return
		}
		http.Redirect(w, r, fmt.Sprintf("/%d", left-1), http.StatusFound)
	})
	for _, c := range []struct {
		most, hops int
		want       Outcome
		requests   int64
		says       string
	}{
		{0, 0, OK, 1, ""},
		{0, 1, Error, 1, "status 302"},
		{1, 1, OK, 2, ""},
		{2, 2, OK, 3, ""},
		{2, 3, Error, 3, "more than 2 redirects"},
	} {
		arrived.Store(0)
		h := newHTTP(t, HTTPConfig{URL: fmt.Sprintf("%s/%d", s.URL, c.hops), Redirects: c.most})
		got := h.Do(t.Context(), 0)
		if err := fmt.Sprint(h.FirstError()); got != c.want || arrived.Load() != c.requests || !strings.Contains(err, c.says) {
			t.Errorf("%d redirects where %d are followed: %v after %d requests, %s", c.hops, c.most, got, arrived.Load(), err)
		}
	}
	if _, err := NewHTTP(HTTPConfig{URL: s.URL, Redirects: -1}); err == nil {
		t.Error("-1 redirects")
	}
}

// Status 307 keeps the method and the body, 303 makes a GET. Another host gets no Authorization.
func TestARedirectedRequestIsTheOneThatIsAskedFor(t *testing.T) {
	seen := make(chan string, 4)
	record := func(r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen <- strings.TrimSpace(r.Method + " " + r.Header.Get("Authorization") + " " + string(body))
	}
	elsewhere, _ := newServer(t, false, func(_ http.ResponseWriter, r *http.Request) { record(r) })
	other := strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1)
	s, _ := newServer(t, false, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/same":
			http.Redirect(w, r, "/", http.StatusTemporaryRedirect)
		case "/get":
			http.Redirect(w, r, "/", http.StatusSeeOther)
		case "/other":
			http.Redirect(w, r, other, http.StatusTemporaryRedirect)
		default:
			record(r)
		}
	})
	for path, want := range map[string]string{"/same": "POST me 7", "/get": "GET me", "/other": "POST  7"} {
		h := newHTTP(t, HTTPConfig{
			URL: s.URL + path, Body: []byte("{{n}}"), Data: &Data{}, Header: http.Header{"Authorization": {"me"}}, Redirects: 1,
		})
		if got := h.Do(t.Context(), 7); got != OK {
			t.Fatalf("%s: %v, %v", path, got, h.FirstError())
		}
		if got := <-seen; got != want {
			t.Errorf("%s: %q arrived, want %q", path, got, want)
		}
	}
}
