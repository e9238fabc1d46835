package admissionhttp_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/spillway-go/spillway/admissionhttp"
)

// status returns the status of an answer to a request without a body.
func status(h http.Handler, method, target, agent string) int {
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, target, nil)
	r.Header.Set("User-Agent", agent)
	h.ServeHTTP(w, r)
	return w.Code
}

// full returns a middleware whose limiter has no free slot.
func full(t *testing.T, cfg admissionhttp.Config) func(http.Handler) http.Handler {
	t.Helper()
	cfg.Limiter = one(t)
	must(cfg.Limiter.Acquire(t.Context()))
	return middleware(t, cfg)
}

// Most of these paths were refused, and full replicas were killed for that.
func TestProbesAreExempt(t *testing.T) {
	h := full(t, admissionhttp.Config{})(ok)
	for _, path := range []string{
		"/livez", "/readyz", "/healthz", "/health", "/startupz", "/metrics", "/ping", "/live", "/ready", "/health/live", "/health/ready",
		"/api/health", "/up", "/-/healthy", "/-/ready", "/actuator/health", "/actuator/health/liveness", "/debug/pprof", "/debug/pprof/heap",
	} {
		for _, target := range []string{path, path + "/", path + "?verbose"} {
			if got := status(h, http.MethodGet, target, ""); got != 200 {
				t.Errorf("GET %s: %d", target, got)
			}
			if got := status(h, http.MethodPost, target, "kube-probe/1.33"); got != 503 {
				t.Errorf("POST %s: %d", target, got)
			}
		}
	}
	for _, target := range []string{
		"/", "/healthz/patients", "/healthz/../patients", "/healthz//", "/health/records", "/actuator/healthy", "/actuator/env", "/up/load",
		"/debug/pprof/../../patients", "/debug/pprof/%2e%2e/patients", "/debug/pprof//patients", "/debug%2Fpprof/heap", "/health%2Flive",
	} {
		if got := status(h, http.MethodGet, target, ""); got != 503 {
			t.Errorf("GET %s: %d", target, got)
		}
	}
}

func TestProbesOfYourOwn(t *testing.T) {
	paths := []string{"/my/health", "/checks/"}
	never := func(*http.Request) bool { return false }
	for name, h := range map[string]http.Handler{
		"Probes":        full(t, admissionhttp.Config{Probes: paths})(ok),
		"beside Exempt": full(t, admissionhttp.Config{Probes: append(paths, "/livez"), Exempt: never})(ok),
	} {
		for target, want := range map[string]int{
			"/my/health": 200, "/my/health/": 200, "/checks": 200, "/checks/database": 200, "/livez": 200,
			"/my/health/records": 503, "/checks/../patients": 503, "/my": 503, "/": 503,
		} {
			if got := status(h, http.MethodGet, target, ""); got != want {
				t.Errorf("%s: GET %s: %d, want %d", name, target, got, want)
			}
			if got := status(h, http.MethodPost, target, ""); got != 503 {
				t.Errorf("%s: POST %s: %d", name, target, got)
			}
		}
	}
	for _, path := range []string{"", "/", "health", "GET /health"} {
		if _, err := admissionhttp.New(admissionhttp.Config{Probes: []string{path}}); err == nil {
			t.Errorf("%q was accepted", path)
		}
	}
}

// Any client can send the User-Agent of a health check, so only few requests run by it.
func TestHealthChecksByTheirUserAgent(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	stays := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { entered <- struct{}{}; <-leave })
	h := full(t, admissionhttp.Config{})(stays)
	statuses := make(chan int)
	for range 2 { // each place is used again
		for _, agent := range []string{"kube-probe/1.33", "GoogleHC/1.0", "ELB-HealthChecker/2.0", "kube-probe/1.33"} {
			go func() { statuses <- status(h, http.MethodGet, "/my/health", agent) }()
			<-entered
		}
		for range 10 {
			if got := status(h, http.MethodGet, "/my/health", "kube-probe/1.33"); got != 503 {
				t.Errorf("the fifth at once: %d", got)
			}
		}
		for range 4 {
			leave <- struct{}{}
			if got := <-statuses; got != 200 {
				t.Errorf("%d", got)
			}
		}
	}
	for _, agent := range []string{"", "curl/8 kube-probe/1.33", "kube-probe"} {
		if got := status(h, http.MethodGet, "/", agent); got != 503 {
			t.Errorf("%q: %d", agent, got)
		}
	}
	only := full(t, admissionhttp.Config{Exempt: func(*http.Request) bool { return false }})(ok)
	if got := status(only, http.MethodGet, "/", "kube-probe/1.33"); got != 503 {
		t.Errorf("with an Exempt of its own: %d", got)
	}
}
