package loadgen

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestARefusedClientIsToldWhenToAskAgain(t *testing.T) {
	answers := map[string]struct {
		status int
		says   string
		want   time.Duration
		o      Outcome
	}{
		"/seconds":  {503, "7", 7 * time.Second, Rejected},
		"/quota":    {429, "1", time.Second, Rejected},
		"/nothing":  {503, "", 0, Rejected},
		"/nonsense": {503, "-3, soon", 0, Rejected},
		"/past":     {503, "Wed, 21 Oct 2015 07:28:00 GMT", 0, Rejected},
		"/far":      {503, "99999999999", 24 * time.Hour, Rejected},
		"/fine":     {200, "5", 0, OK},
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := answers[r.URL.Path]
		if a.says != "" {
			w.Header().Set("Retry-After", a.says)
		}
		w.WriteHeader(a.status)
	}))
	defer srv.Close()
	for path, want := range answers {
		h := must(NewHTTP(HTTPConfig{URL: srv.URL + path}))(t)
		for _, raw := range []bool{true, false} {
			if !raw {
				h.raw = nil
			}
			if o, after := h.Ask(t.Context(), 1); o != want.o || after != want.want {
				t.Errorf("%s, by our own connections %v: %v, %v; want %v, %v", path, raw, o, after, want.o, want.want)
			}
		}
		h.Close()
	}
}
