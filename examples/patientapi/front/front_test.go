package front

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/route"
)

type request struct {
	Word string `json:"word"`
}

func echo(_ context.Context, req request) (string, error) { return req.Word, nil }

// ask sends a request without a network.
func ask(h http.Handler, method, path string, body io.Reader, header ...string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, path, body)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	h.ServeHTTP(w, r)
	return w
}

func newAPI(t *testing.T, f *Front, operations ...*route.Route) *API {
	t.Helper()
	api := f.API(route.Config{})
	require.NoError(t, api.Add(Public(operations...)))
	return api
}

// unread is a body that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read before admission")
	return 0, io.EOF
}

func newLimiter(t *testing.T, cfg limiter.Config) *limiter.Limiter {
	t.Helper()
	lim, err := limiter.New(cfg)
	require.NoError(t, err)
	return lim
}

func TestWhatIsRefusedHasARequestIDIsCountedAndItsBodyUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		lim := newLimiter(t, limiter.Config{Law: limit.NewFixed(1), QueueSize: -1})
		f := New(Config{Logger: slog.New(slog.NewTextHandler(&log, nil)), Limiter: lim})
		api := newAPI(t, f, route.New("POST", "/echo", echo))
		require.NoError(t, api.Page("GET /livez", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
		permit, err := lim.Acquire(t.Context())
		require.NoError(t, err)
		for _, path := range []string{"/echo", "/nowhere"} {
			w := ask(api, "POST", path, unread{t}, "X-Request-Id", "find-me", "Spillway-Priority", "critical")
			h := w.Header()
			if w.Code != 503 || h.Get("Content-Type") != "application/problem+json" || h.Get("Cache-Control") != "no-store" || h.Get("Spillway-Reason") != "queue_full" ||
				h.Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "#temporary-reduced-capacity") || !strings.Contains(w.Body.String(), `"request_id":"find-me"`) {
				t.Errorf("%d %v %s", w.Code, h, w.Body)
			}
		}
		if w := ask(api, "GET", "/livez", nil); w.Code != 200 {
			t.Errorf("a probe was shed: %d", w.Code)
		}
		permit.Release()
		if w := ask(api, "POST", "/echo", strings.NewReader(`{"word":"x"}`)); w.Code != 200 {
			t.Errorf("with room: %d %s", w.Code, w.Body)
		}
		if o := f.Outcomes(); o != (Outcomes{OK: 1, Rejected: 2}) {
			t.Errorf("outcomes %+v", o)
		}
		synctest.Wait() // the line is not written by the one that is refused
		if text := log.String(); strings.Count(text, "\n") != 1 || strings.Contains(text, "find-me") {
			t.Errorf("want one line about both refusals: %s", text)
		}
	})
}

// The class of a route decides how long its requests may take, their wait included.
func TestDeadlinesAreThoseOfTheClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Config{Limiter: newLimiter(t, limiter.Config{}), Deadlines: Deadlines{Critical: time.Minute, Bulk: time.Hour}})
		var left time.Duration // 0: no deadline
		look := func(ctx context.Context, _ route.Empty) (route.Empty, error) {
			left = 0
			if end, ok := ctx.Deadline(); ok {
				left = time.Until(end)
			}
			return route.Empty{}, nil
		}
		api := newAPI(t, f, route.New("GET", "/critical", look).Priority(spillway.Critical), route.New("GET", "/normal", look),
			route.New("GET", "/bulk", look).Priority(spillway.Low))
		for path, most := range map[string]time.Duration{"/critical": time.Minute, "/normal": 0, "/bulk": time.Hour} {
			if w := ask(api, "GET", path, nil); w.Code != 204 || left != most {
				t.Errorf("%s: %d, %v left of %v", path, w.Code, left, most)
			}
		}
		if ask(api, "GET", "/bulk", nil, "Spillway-Deadline", "30000"); left != 30*time.Second {
			t.Errorf("%v left of 30s that the client gave", left)
		}
	})
}

// A client took the half for all of it: the panic was logged, and the answer ended
// as if it were whole.
func TestAPanicInTheMiddleOfAnAnswerBreaksItOff(t *testing.T) {
	var log bytes.Buffer
	f := New(Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	half := newAPI(t, f).observe(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		panic("a bug")
	}))
	broken := func() (v any) {
		defer func() { v = recover() }()
		ask(half, "GET", "/half", nil)
		return nil
	}()
	if broken != http.ErrAbortHandler {
		t.Errorf("the connection is kept: %v", broken)
	}
	if !strings.Contains(log.String(), "a bug") {
		t.Error("the panic was not logged")
	}
	if o := f.Outcomes(); o != (Outcomes{Error: 1}) {
		t.Errorf("outcomes %+v", o)
	}
}

// Clients that left in the middle of a stream were counted as errors of the service.
func TestAClientThatLeavesInTheMiddleOfAnAnswerIsNoError(t *testing.T) {
	f := New(Config{})
	ctx, leave := context.WithCancel(t.Context())
	api := newAPI(t, f, route.New("GET", "/stream", func(context.Context, route.Empty) (route.Stream, error) {
		return route.Stream{Write: func(w io.Writer) error {
			_, _ = io.WriteString(w, "half")
			leave()
			return context.Canceled
		}}, nil
	}))
	defer func() {
		if recover() != http.ErrAbortHandler {
			t.Error("the connection is kept")
		}
		if o := f.Outcomes(); o != (Outcomes{Abandoned: 1}) {
			t.Errorf("outcomes %+v", o)
		}
	}()
	api.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/stream", nil))
}

func TestRequestIDIsKeptOrMade(t *testing.T) {
	api := newAPI(t, New(Config{}), route.New("POST", "/echo", echo))
	for _, path := range []string{"/echo", "/nowhere"} {
		if w := ask(api, "POST", path, nil, "X-Request-Id", "abc-1.2_3"); w.Header().Get("X-Request-Id") != "abc-1.2_3" {
			t.Errorf("a sane id became %q", w.Header().Get("X-Request-Id"))
		}
	}
	seen := map[string]bool{}
	for _, bad := range []string{"", "two words", `a"b`, "line\tbreak", strings.Repeat("x", 129), "naïve"} {
		id := ask(api, "POST", "/echo", nil, "X-Request-Id", bad).Header().Get("X-Request-Id")
		if id == bad || !saneRequestID(id) || seen[id] {
			t.Errorf("%q became %q", bad, id)
		}
		seen[id] = true
	}
}

func FuzzRequestID(f *testing.F) {
	f.Add("abc")
	f.Add("a\nb")
	f.Fuzz(func(t *testing.T, id string) {
		if saneRequestID(id) && (len(id) > 128 || strings.ContainsAny(id, " \t\r\n\"'<>=\\/\x00")) {
			t.Fatalf("%q would go into the log", id)
		}
	})
}
