package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
)

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
		require.NoError(t, err)
		resp.Body.Close()
		if resp.StatusCode == http.StatusUnauthorized {
			t.Errorf("%s: %s", link[1], resp.Status)
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
