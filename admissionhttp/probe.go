package admissionhttp

import (
	"fmt"
	"net/http"
	"strings"
)

// isProbe reports whether r is a probe by the default of Config.Exempt.
func isProbe(r *http.Request) bool {
	if !plain(r) {
		return false
	}
	switch strings.TrimSuffix(r.URL.Path, "/") {
	case "/livez", "/readyz", "/healthz", "/startupz", "/health", "/live", "/ready", "/up", "/ping", "/metrics",
		"/health/live", "/health/ready", "/api/health", "/-/healthy", "/-/ready":
		return true
	}
	return below(r.URL.Path, "/actuator/health") || below(r.URL.Path, "/debug/pprof")
}

// plain reports whether r is a GET or HEAD, which change nothing, of a path that means the same to all
// routers: /a%2Fb is one segment for some.
func plain(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.URL.RawPath == ""
}

// below reports whether path is top or below top. Some handlers resolve /top/../other by themselves.
func below(path, top string) bool {
	return len(path) >= len(top) && path[:len(top)] == top && isBelow(path[len(top):])
}

// isBelow reports whether the rest of a path, after the top, leads to the top or below.
func isBelow(rest string) bool {
	return rest == "" || rest[0] == '/' && !strings.Contains(rest, "/.") && !strings.Contains(rest, "//")
}

// probes are paths of probes. A path with a slash at the end stands for all below it too.
type probes []string

// has reports whether r is a probe.
func (all probes) has(r *http.Request) bool {
	if !plain(r) {
		return false
	}
	for _, probe := range all {
		if top, ok := strings.CutSuffix(probe, "/"); ok && below(r.URL.Path, top) || strings.TrimSuffix(r.URL.Path, "/") == top {
			return true
		}
	}
	return false
}

// check returns an error for a path that cannot be the path of a probe.
func (all probes) check() error {
	for _, path := range all {
		if !strings.HasPrefix(path, "/") || strings.Trim(path, "/") == "" {
			return fmt.Errorf("there is %.60q: a path begins with a slash, as /my/health; / alone would exempt every GET", path)
		}
	}
	return nil
}

// agents are the beginnings of the User-Agent of health checks, whose path is the user's choice.
var agents = []string{"kube-probe/", "GoogleHC/", "ELB-HealthChecker/"}

// agentsAtOnce is how many requests are exempt by their User-Agent at a time: a kubelet has up to three
// probes of a container.
const agentsAtOnce = 4

func isChecker(agent string) bool {
	for _, a := range agents {
		if strings.HasPrefix(agent, a) {
			return true
		}
	}
	return false
}

// servedByAgent runs next if r is exempt by its User-Agent, and reports whether next has run. Any client can
// send that User-Agent, so such requests are bounded.
func (g *guard) servedByAgent(next http.Handler, w http.ResponseWriter, r *http.Request) bool {
	if agent := r.Header["User-Agent"]; len(agent) != 1 || !isChecker(agent[0]) || !plain(r) {
		return false
	}
	defer g.byAgent.Add(-1)
	if g.byAgent.Add(1) > agentsAtOnce {
		return false
	}
	next.ServeHTTP(w, r)
	return true
}
