package route

import (
	"cmp"
	"net/http"
	"strconv"
)

var (
	errNotFound    = &Problem{Status: http.StatusNotFound, Type: "no-such-resource", Detail: "there is nothing at this path"}
	errWrongMethod = &Problem{Status: http.StatusMethodNotAllowed, Type: "method-not-allowed", Detail: "this path does not have this method"}
)

// unmatched answers requests that no pattern matches. Without this catch-all pattern, ServeMux
// itself would answer 404 or 405, in plain text.
func (m *Mux) unmatched(w http.ResponseWriter, r *http.Request) {
	methods, g := m.paths.at(r.Host, r.URL.EscapedPath())
	g = cmp.Or(g, m.root)
	answer := g.notFound
	if methods.header != nil {
		own := *g.wrongMethod
		own.allow = methods.header
		answer = &own
	}
	g.serveUnmatched(innermost(w), r, answer)
}

func (m *Mux) serveNotFound(w http.ResponseWriter, r *http.Request) {
	g := m.groupOf(r)
	g.serveUnmatched(w, r, g.notFound)
}

// refusal answers requests that no pattern matches with a problem.
type refusal struct {
	cfg     *Config
	limits  Limits
	problem *Problem
	allow   []string // the value of Allow
	body    []byte   // nil if user code takes part in the body
	length  []string // the value of Content-Length
}

// refusal returns the answer p of g, without Allow.
func (g *Group) refusal(p *Problem) *refusal {
	r := &refusal{cfg: &g.cfg, limits: g.cfg.Limits.withDefaults(defaults), problem: p}
	if g.cfg.OnProblem == nil && g.cfg.ProblemFormat.Encode == nil {
		own := *p
		own.complete(g.cfg.problemBase())
		_, r.body, _ = g.cfg.ProblemFormat.encode(&own)
		r.length = []string{strconv.Itoa(len(r.body))}
	}
	return r
}

func (a *refusal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.limits.setReadDeadline(w, r)
	if a.allow != nil {
		w.Header()["Allow"] = a.allow
	}
	status, n := a.problem.Status, int64(0)
	if a.body != nil {
		n = writeProblemBody(w, status, problemContent, a.length, a.body)
	} else {
		own := *a.problem
		status, n = a.cfg.writeProblem(w, r, "", &own, a.problem)
	}
	a.cfg.observe(r, &Outcome{Status: status, Bytes: n, Err: a.problem})
}
