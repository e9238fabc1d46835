package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/internal/await"
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
		var entered atomic.Bool
		s.store.script["P000001"] = func(ctx context.Context) error {
			entered.Store(ctx.Err() == nil)
			<-ctx.Done()
			return ctx.Err()
		}
		var a answered
		await.True(t, "a request is in the store before its time is over", func() bool {
			a = s.do(t, "GET", "/api/v1/patients/P000001", "")
			return entered.Load()
		})
		problemIn(t, a, 504, "timeout")
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

func TestProbes(t *testing.T) {
	s := serve(t, patterns.Limiter, patterns.Config{}, 0)
	status := func(path string) int {
		if path == "/health" {
			return s.operate(t, path).status
		}
		return s.do(t, "GET", path, "").status
	}
	if status("/livez") != 200 || status("/readyz") != 200 || status("/health") != 200 {
		t.Error("a serving API should be alive, ready and healthy")
	}
	s.SetReady(false)
	if status("/livez") != 200 || status("/readyz") != 503 || status("/health") != 200 {
		t.Error("a draining API should be alive and not ready")
	}
	s.store.ping = errors.New("gone, at /var/secret")
	a := s.operate(t, "/health")
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

// Anybody could read them: what runs how, and for whom.
func TestDiagnosticsAreNotForClients(t *testing.T) {
	s := serve(t, patterns.Limiter, patterns.Config{}, 0)
	for _, path := range []string{"/metrics", "/health", "/debug/pprof/"} {
		problemIn(t, s.do(t, "GET", path, ""), 404, "no-such-resource")
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

// A browser sends no token: a link to what needs one ended at a 401.
func TestLinksOfTheIndexLeadSomewhereWithoutAToken(t *testing.T) {
	s := serve(t, patterns.Adaptive, patterns.Config{}, 0)
	page := s.do(t, "GET", "/", "").body
	links := regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(page, -1)
	if len(links) < 5 {
		t.Errorf("%d links", len(links))
	}
	for _, link := range links {
		if id, here := strings.CutPrefix(link[1], "#"); here {
			if !strings.Contains(page, `<pre id="`+id+`">curl `) {
				t.Errorf("%s leads to no command", link[1])
			}
			continue
		}
		resp, err := http.Get(s.URL + link[1])
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusUnauthorized {
			t.Errorf("%s: %s", link[1], resp.Status)
		}
	}
}

func TestMetricsNameThePattern(t *testing.T) {
	for pattern, part := range map[string]string{
		patterns.Limiter:    `spillway_requests_total{key="",limiter="limiter",result="admitted"} 1`,
		patterns.WorkerPool: `spillway_pool_workers{pool="workerpool",state=`,
		patterns.Optimized:  `spillway_pool_jobs_total{pool="optimized",result="queue_full"} 0`,
		patterns.Naive:      `patientapi_http_request_duration_seconds_count{code="200",route="GET /api/v1/patients/{id}"} 1`,
	} {
		s := serve(t, pattern, patterns.Config{}, 0)
		s.do(t, "GET", "/api/v1/patients/P000001", "")
		if a := s.operate(t, "/metrics"); !strings.Contains(a.body, part) {
			t.Errorf("%s lacks %s", pattern, part)
		}
	}
}

func TestWhatNoRouteMatchesIsCounted(t *testing.T) {
	s := serve(t, patterns.Limiter, patterns.Config{}, 0)
	for range 3 {
		problemIn(t, s.do(t, "GET", "/wp-login.php", ""), 404, "no-such-resource")
	}
	problemIn(t, s.do(t, "DELETE", "/api/v1/patients/P000001", ""), 405, "method-not-allowed")
	s.do(t, "GET", "/livez", "")
	s.do(t, "GET", "/api/v1/patients/P999999", "")
	metrics := s.operate(t, "/metrics").body
	for _, part := range []string{`{code="404",route="(none)"} 3`, `{code="405",route="(none)"} 1`, `{code="404",route="GET /api/v1/patients/{id}"} 1`} {
		if !strings.Contains(metrics, "patientapi_http_request_duration_seconds_count"+part) {
			t.Errorf("%s is missing", part)
		}
	}
	if strings.Contains(metrics, "wp-login") {
		t.Error("a path from outside is a label")
	}
	if o := s.Outcomes(); o.BadInput != 5 || o.OK != 0 {
		t.Errorf("%+v", o)
	}
}

// They were logged nowhere: the clients' 502 was all there was. And what was
// logged of other failures, a line for each, may have named somebody.
func TestFailuresOfTheStoreAreLoggedOnceASecondAndNameNobody(t *testing.T) {
	for _, c := range []struct {
		fails  func() error
		status int
		says   string
	}{
		{func() error {
			return fmt.Errorf("%w: disk full, reading patient P000042 \"Erika Mustermann\" <erika@example.org> born 1980-02-03", patientapi.ErrUnavailable)
		}, 502, "the store failed"},
		{func() error { return errors.New("disk full, P000042 erika@example.org") }, 500, "requests failed"},
		{func() error { panic("disk full, P000042 erika@example.org") }, 500, "handlers did not return"},
	} {
		s := serve(t, patterns.Limiter, patterns.Config{}, 0)
		s.store.script["P000042"] = func(context.Context) error { return c.fails() }
		const asked = 50
		for range asked {
			if a := s.do(t, "GET", "/api/v1/patients/P000042", ""); a.status != c.status {
				t.Fatalf("%d, want %d", a.status, c.status)
			}
		}
		s.SetReady(false) // tells the rest
		log := s.log.String()
		lines := strings.Count(log, c.says)
		if lines < 2 || lines >= asked || !strings.Contains(log, "disk full") || !strings.Contains(log, "request_id=") {
			t.Errorf("%d lines for %d failures:\n%s", lines, asked, log)
		}
		told := 0
		for _, m := range regexp.MustCompile(`failures=(\d+)`).FindAllStringSubmatch(log, -1) {
			n, _ := strconv.Atoi(m[1])
			told += n
		}
		if told != asked {
			t.Errorf("the log tells of %d failures, want %d", told, asked)
		}
		for _, secret := range []string{"P000042", "erika", "Mustermann", "1980-02-03"} { // 1980 alone is in some addresses of a stack
			if strings.Contains(log, secret) {
				t.Errorf("the log shows %q:\n%s", secret, log)
			}
		}
	}
}
