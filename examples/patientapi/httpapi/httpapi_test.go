package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/patterns"
)

func TestLookupByPathByQueryAndInABatch(t *testing.T) {
	for _, pattern := range patterns.Names() {
		s := serve(t, pattern, patterns.Config{}, 0)
		for _, path := range []string{"/api/v1/patients/P000007", "/api/v1/patients?id=P000007"} {
			a := s.do(t, "GET", path, "")
			if a.status != 200 || a.body != want(7) || a.header.Get("Content-Type") != "application/json" {
				t.Errorf("%s %s: %d %s", pattern, path, a.status, a.body)
			}
		}
		a := s.do(t, "POST", "/api/v1/patients:batch", `{"ids":["P000009","P999999","P000003"]}`, jsonBody...)
		if want := `{"patients":[` + want(9) + `,` + want(3) + `],"missing":["P999999"]}`; a.status != 200 || a.body != want {
			t.Errorf("%s batch: %d %s", pattern, a.status, a.body)
		}
	}
}

func TestTimeoutIs504(t *testing.T) {
	for _, pattern := range patterns.Names() {
		s := serve(t, pattern, patterns.Config{}, time.Millisecond)
		s.store.script["P000001"] = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		problemIn(t, s.do(t, "GET", "/api/v1/patients/P000001", ""), 504, "timeout")
	}
}

func TestOverloadSaysWhenToComeBack(t *testing.T) {
	for _, pattern := range []string{patterns.WorkerPool, patterns.Optimized, patterns.Limiter} {
		s := serve(t, pattern, patterns.Config{Workers: 1}, 0)
		running, finish := make(chan struct{}), make(chan struct{})
		s.store.script["P000001"] = func(context.Context) error { close(running); <-finish; return nil }
		var wg sync.WaitGroup
		wg.Go(func() {
			if a := s.do(t, "GET", "/api/v1/patients/P000001", ""); a.status != 200 {
				t.Errorf("%s: the admitted request got %d", pattern, a.status)
			}
		})
		<-running
		for range 20 {
			a := s.do(t, "GET", "/api/v1/patients/P000002", "")
			problemIn(t, a, 503, "#temporary-reduced-capacity")
			if after := a.header.Get("Retry-After"); after == "" || after == "0" || strings.ContainsAny(after, ".ms-") {
				t.Errorf("%s: Retry-After is %q", pattern, after)
			}
		}
		close(finish)
		wg.Wait()
		if o := s.Outcomes(); o.OK != 1 || o.Rejected != 20 {
			t.Errorf("%s: outcomes %+v", pattern, o)
		}
		if n := strings.Count(s.log.String(), "shedding"); n < 1 || n >= 20 {
			t.Errorf("%s: %d log lines for 20 refusals", pattern, n)
		}
	}
}

func TestBadHandlersCostNoSlot(t *testing.T) {
	for _, pattern := range patterns.Names() {
		t.Run(pattern, func(t *testing.T) {
			s := serve(t, pattern, patterns.Config{Workers: 2, QueueSize: 1}, 0)
			s.store.script["P000901"] = func(context.Context) error { panic("a bug") }
			s.store.script["P000902"] = func(context.Context) error { runtime.Goexit(); return nil }
			s.store.script["P000903"] = func(context.Context) error { panic(http.ErrAbortHandler) }
			for range 3 {
				problemIn(t, s.do(t, "GET", "/api/v1/patients/P000901", "", "X-Request-Id", "find-me"), 500, "internal")
				problemIn(t, s.do(t, "GET", "/api/v1/patients/P000902", ""), 500, "internal")
				if a, err := s.try(t.Context(), "GET", "/api/v1/patients/P000903", ""); err == nil {
					t.Errorf("an aborted handler answered %d %s", a.status, a.body)
				}
			}
			if a := s.do(t, "GET", "/api/v1/patients/P000001", ""); a.status != 200 || a.body != want(1) {
				t.Errorf("the good request got %d %s", a.status, a.body)
			}
			log := s.log.String()
			if !strings.Contains(log, "find-me") || !strings.Contains(log, "a bug") || !strings.Contains(log, "goroutine") {
				t.Errorf("the log lacks the panic, its request or its stack: %s", log)
			}
			if strings.Contains(log, "abort Handler") {
				t.Error("an intended abort was logged")
			}
			if o := s.Outcomes(); o.Error != 9 || o.OK != 1 {
				t.Errorf("outcomes %+v", o)
			}
		})
	}
}

// A client took the half for all of it: the panic was logged, and the answer ended
// as if it were whole.
func TestAPanicInTheMiddleOfAnAnswerBreaksItOff(t *testing.T) {
	s := serve(t, patterns.Naive, patterns.Config{}, 0)
	half := s.API.observe("GET /half")(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		panic("a bug")
	}))
	broken := func() (v any) {
		defer func() { v = recover() }()
		half.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/half", nil))
		return nil
	}()
	if broken != http.ErrAbortHandler {
		t.Errorf("the connection is kept: %v", broken)
	}
	if !strings.Contains(s.log.String(), "a bug") {
		t.Error("the panic was not logged")
	}
	if o := s.Outcomes(); o.Error != 1 || o.OK != 0 {
		t.Errorf("outcomes %+v", o)
	}
}

func TestRequestIDIsKeptOrMade(t *testing.T) {
	s := serve(t, patterns.Naive, patterns.Config{}, 0)
	if a := s.do(t, "GET", "/livez", "", "X-Request-Id", "abc-1.2_3"); a.header.Get("X-Request-Id") != "abc-1.2_3" {
		t.Errorf("a sane id became %q", a.header.Get("X-Request-Id"))
	}
	seen := map[string]bool{}
	for _, bad := range []string{"", "two words", `a"b`, "line\tbreak", strings.Repeat("x", 129), "naïve"} {
		a := s.do(t, "GET", "/livez", "", "X-Request-Id", bad)
		id := a.header.Get("X-Request-Id")
		if id == bad || !saneRequestID(id) || seen[id] {
			t.Errorf("%q became %q", bad, id)
		}
		seen[id] = true
	}
}

func TestProbes(t *testing.T) {
	s := serve(t, patterns.Limiter, patterns.Config{}, 0)
	status := func(path string) int { return s.do(t, "GET", path, "").status }
	if status("/livez") != 200 || status("/readyz") != 200 || status("/health") != 200 {
		t.Error("a serving API should be alive, ready and healthy")
	}
	s.SetReady(false)
	if status("/livez") != 200 || status("/readyz") != 503 || status("/health") != 200 {
		t.Error("a draining API should be alive and not ready")
	}
	s.store.ping = errors.New("gone, at /var/secret")
	a := s.do(t, "GET", "/health", "")
	if a.status != 503 || status("/livez") != 200 || strings.Contains(a.body, "secret") {
		t.Errorf("without its store: %d %s", a.status, a.body)
	}
	var h struct {
		Pattern struct{ Pattern string }
		Build   struct{ Go string }
	}
	if err := json.Unmarshal([]byte(a.body), &h); err != nil || h.Pattern.Pattern != "limiter" || h.Build.Go == "" {
		t.Errorf("%v in %s", err, a.body)
	}
}

func TestIndexSaysWhatIsHere(t *testing.T) {
	s := serve(t, patterns.Optimized, patterns.Config{}, 0)
	a := s.do(t, "GET", "/", "")
	for _, part := range []string{"<strong>optimized</strong>", "/api/v1/patients/P000001", "patients:batch", "/metrics", "/health", "curl", s.Listener.Addr().String()} {
		if !strings.Contains(a.body, part) {
			t.Errorf("the index lacks %q", part)
		}
	}
}

func TestMetricsNameThePattern(t *testing.T) {
	for pattern, part := range map[string]string{
		patterns.Limiter:    `spillway_requests_total{limiter="limiter",result="admitted"} 1`,
		patterns.WorkerPool: `spillway_pool_workers{pool="workerpool",state=`,
		patterns.Optimized:  `spillway_pool_jobs_total{pool="optimized",result="queue_full"} 0`,
		patterns.Naive:      `patientapi_http_request_duration_seconds_count{code="200",route="GET /api/v1/patients/{id}"} 1`,
	} {
		s := serve(t, pattern, patterns.Config{}, 0)
		s.do(t, "GET", "/api/v1/patients/P000001", "")
		if a := s.do(t, "GET", "/metrics", ""); !strings.Contains(a.body, part) {
			t.Errorf("%s lacks %s", pattern, part)
		}
	}
}
