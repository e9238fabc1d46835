package route

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func answering[Res any](t testing.TB, cfg Config, f func() (Res, error)) http.Handler {
	t.Helper()
	m := NewMux(cfg)
	check(t, m.Add(New("GET", "/", func(context.Context, Empty) (Res, error) { return f() })))
	return m
}

type chosen struct {
	Version int `json:"version"`
}

// tagged is a response with a status and a header of its own.
type tagged struct{ Response[chosen] }

func tag(version int) tagged {
	return tagged{Response[chosen]{http.StatusAccepted, http.Header{"ETag": {`"7"`}}, chosen{version}}}
}

func TestResponsesChooseStatusAndHeaders(t *testing.T) {
	quiet := Config{Untimed: true}
	header := http.Header{"x-a": {"1", "2"}, "Content-Type": {"application/fhir+json"}}
	var none *chosen
	for _, c := range []struct {
		name   string
		h      http.Handler
		status int
		header string
		want   string
		body   string
	}{
		{"embedded", answering(t, quiet, func() (tagged, error) { return tag(7), nil }), 202, "ETag", `"7"`, `{"version":7}`},
		{"nil pointer", answering(t, quiet, func() (*chosen, error) { return none, nil }), 200, "ETag", "", `null`},
		{"wrapped", answering(t, quiet, func() (Response[chosen], error) { return Response[chosen]{201, header, chosen{7}}, nil }), 201, "Content-Type", "application/fhir+json", `{"version":7}`},
		{"wrapped and empty", answering(t, quiet, func() (Response[Empty], error) { return Response[Empty]{Header: header}, nil }), 204, "X-A", "1", ""},
		{"not modified", answering(t, quiet, func() (Response[chosen], error) { return Response[chosen]{Code: 304}, nil }), 304, "Content-Type", "", ""},
		{"any", answering(t, quiet, func() (any, error) { return []int{1}, nil }), 200, "Content-Type", "application/json", `[1]`},
		{"html is safe", answering(t, quiet, func() (string, error) { return "</script>", nil }), 200, "Content-Type", "application/json", `"\u003c/script\u003e"`},
		{"untimed", answering(t, quiet, func() (tagged, error) { return tag(0), nil }), 202, "Server-Timing", "", `{"version":0}`},
	} {
		w := do(c.h, "GET", "/", "", "")
		if w.Code != c.status || w.Header().Get(c.header) != c.want || w.Body.String() != c.body {
			t.Errorf("%s: %d %s %v", c.name, w.Code, w.Body, w.Header())
		}
	}
}

func TestResponseThatDoesNotEncodeIsReportedNotHalfSent(t *testing.T) {
	var reported error
	cfg := Config{Report: func(_ context.Context, _ string, err error) { reported = err }}
	for _, h := range []http.Handler{
		answering(t, cfg, func() (any, error) { return []any{"begun", math.NaN()}, nil }),
		answering(t, cfg, func() (Response[int], error) { return Response[int]{Code: 99}, nil }),
		answering(t, cfg, func() (File, error) { return File{}, nil }),
		answering(t, cfg, func() (Stream, error) { return Stream{}, nil }),
	} {
		reported = nil
		if w := do(h, "GET", "/", "", ""); w.Code != 500 || strings.Contains(w.Body.String(), "begun") || reported == nil {
			t.Errorf("%d %s, reported %v", w.Code, w.Body, reported)
		}
	}
}

// closing reports when it is closed.
type closing struct {
	*bytes.Reader
	closed *bool
}

func (c closing) Close() error { *c.closed = true; return nil }

func TestFilesAreServedInRangesAndClosed(t *testing.T) {
	closed := false
	h := answering(t, Config{}, func() (File, error) {
		return File{Name: "../../a report.pdf", ContentType: "application/pdf", ETag: `"1"`, Modified: time.Unix(1e9, 0),
			Content: closing{bytes.NewReader([]byte("0123456789")), &closed}}, nil
	})
	w := do(h, "GET", "/", "", "")
	if w.Code != 200 || w.Body.String() != "0123456789" || w.Header().Get("Content-Disposition") != `attachment; filename="a report.pdf"` || !closed {
		t.Errorf("%d %s %v, closed %t", w.Code, w.Body, w.Header(), closed)
	}
	if w := do(h, "GET", "/", "", "", "Range", "bytes=2-4"); w.Code != 206 || w.Body.String() != "234" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := do(h, "GET", "/", "", "", "If-None-Match", `"1"`); w.Code != 304 {
		t.Errorf("%d", w.Code)
	}
}

func TestHeadersOfAResponseReplaceThoseOfMiddleware(t *testing.T) {
	h := answering(t, Config{}, func() (Response[int], error) {
		return Response[int]{Header: http.Header{"vary": {"Accept", "Origin"}}}, nil
	})
	w := httptest.NewRecorder()
	w.Header().Set("Vary", "Cookie")
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if got := strings.Join(w.Header()["Vary"], " "); got != "Accept Origin" {
		t.Error(got)
	}
}

func TestServerTimingKeepsWhatMiddlewareWrote(t *testing.T) {
	h := answering(t, Config{}, func() (int, error) { return 1, nil })
	w := httptest.NewRecorder()
	w.Header().Set("Server-Timing", "auth;dur=1")
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if got := w.Header().Values("Server-Timing"); len(got) != 2 || !strings.HasPrefix(got[1], "decode;dur=") {
		t.Error(got)
	}
}
