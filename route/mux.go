package route

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Config is what the routes of a Mux share. The zero Config works.
type Config struct {
	// Errors maps the errors of handlers to problems; the first rule that
	// matches wins. See Errors for what is mapped without a rule.
	Errors Errors

	// Codecs decode content types this package does not know, such as YAML.
	Codecs []Codec

	// Limits of routes that do not set their own; zero fields have defaults.
	Limits Limits

	// ProblemBase is put before problem types that are no URI of their own.
	// Empty means "urn:spillway:problem:".
	ProblemBase string

	// Report is told errors that clients are not: those that no rule maps, which
	// are answered with a bare 500, responses that could not be encoded, and every
	// error of a Stream that has begun, unless its client has left. Nil drops them.
	Report func(ctx context.Context, pattern string, err error)

	// PathValue returns what a wildcard of the pattern matched, where a router
	// other than http.ServeMux keeps that elsewhere. Nil means r.PathValue.
	PathValue func(r *http.Request, name string) string

	// OnProblem is called before a problem is written, with the error it stands
	// for: the place to count, to log, and to give the answer headers or members.
	// The problem is its own to change. It is told of clients that have left, too
	// (status 499). Nil does nothing.
	OnProblem func(w http.ResponseWriter, r *http.Request, p *Problem, err error)

	// Discreet leaves the names of unknown members and parameters out of faults.
	// Clients may have put anything there.
	Discreet bool

	// Untimed leaves out Server-Timing on every route.
	Untimed bool
}

func (c *Config) problemBase() string {
	if c.ProblemBase == "" {
		return "urn:spillway:problem:"
	}
	return c.ProblemBase
}

// Mux serves routes and describes them. Create it with NewMux; add everything
// before serving.
type Mux struct {
	cfg     Config
	mux     *http.ServeMux
	routes  []*Route
	methods []string
	folders bool // some pattern ends with a slash
	first   sync.Once
}

// NewMux returns a Mux without routes.
func NewMux(cfg Config) *Mux {
	return &Mux{cfg: cfg, mux: http.NewServeMux()}
}

// Add registers routes. It reports all that is wrong with any of them; those
// without fault are registered nevertheless.
func (m *Mux) Add(routes ...*Route) error {
	var errs []error
	for _, r := range routes {
		h, err := r.Handler(m.cfg)
		if err == nil && r.name != "" && slices.ContainsFunc(m.routes, func(o *Route) bool { return o.name == r.name }) {
			err = fmt.Errorf("route %s: another route is called %s", r.Pattern(), r.name)
		}
		if err == nil {
			err = m.handle(r.Pattern(), h)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		m.routes = append(m.routes, r)
	}
	return errors.Join(errs...)
}

// Handle registers a plain handler beside the routes. It is not described.
func (m *Mux) Handle(pattern string, h http.Handler) error { return m.handle(pattern, h) }

// handle registers h; ServeMux panics about patterns it cannot accept.
func (m *Mux) handle(pattern string, h http.Handler) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("route %s: %v", pattern, v)
		}
	}()
	m.mux.Handle(pattern, registered{h})
	m.folders = m.folders || pattern != "/" && (strings.HasSuffix(pattern, "/") || strings.HasSuffix(pattern, "/{$}") || strings.HasSuffix(pattern, "...}"))
	if i := strings.IndexAny(pattern, " \t"); i > 0 && !slices.Contains(m.methods, pattern[:i]) {
		m.methods = append(m.methods, pattern[:i])
		slices.Sort(m.methods)
	}
	return nil
}

// ServeHTTP serves the routes. A path that no route has, and a method that a
// path does not have, are answered as problems as well.
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.first.Do(func() {
		_ = m.handle("/", http.HandlerFunc(m.missing)) // unless the user has a pattern for everything
	})
	if m.mayRedirect(r.URL.Path) {
		w = redirecting{w}
	}
	m.mux.ServeHTTP(w, r)
}

// mayRedirect reports whether ServeMux may send the client to another spelling
// of the path, with a slash at its end or cleaned.
func (m *Mux) mayRedirect(path string) bool {
	return m.folders && !strings.HasSuffix(path, "/") || !strings.HasPrefix(path, "/") || strings.Contains(path, "//") || strings.Contains(path, "/.")
}

// redirecting is what ServeMux is given to redirect with, without the page of
// HTML that it would write. Handlers are given the writer inside.
type redirecting struct{ http.ResponseWriter }

func (w redirecting) WriteHeader(status int) {
	w.Header().Del("Content-Type")
	w.ResponseWriter.WriteHeader(status)
}

func (w redirecting) Write(page []byte) (int, error) { return len(page), nil }

type registered struct{ http.Handler }

func (h registered) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if outer, ok := w.(redirecting); ok {
		w = outer.ResponseWriter
	}
	h.Handler.ServeHTTP(w, r)
}

// Problem answers with the problem that err is, as a route does: for middleware
// and plain handlers that have not answered yet.
func (m *Mux) Problem(w http.ResponseWriter, r *http.Request, err error) {
	p, foreseen := m.cfg.Errors.answer(r.Context(), err)
	if !foreseen && m.cfg.Report != nil {
		m.cfg.Report(r.Context(), r.Pattern, err)
	}
	m.write(w, r, &p, err)
}

func (m *Mux) write(w http.ResponseWriter, r *http.Request, p *Problem, err error) {
	m.cfg.Limits.or(defaults).hurry(w, r)
	if m.cfg.OnProblem != nil {
		p.own()
		m.cfg.OnProblem(w, r, p, err)
	}
	p.write(w, m.cfg.problemBase())
}

// missing answers what no pattern matches. The mux would tell 404 from 405 by
// itself, in plain text, were there not this pattern for everything.
func (m *Mux) missing(w http.ResponseWriter, r *http.Request) {
	var allow []string
	for _, method := range m.methods {
		other := *r
		other.Method = method
		if _, pattern := m.mux.Handler(&other); pattern != "" && pattern != "/" {
			allow = append(allow, method)
			if method == http.MethodGet {
				allow = append(allow, http.MethodHead)
			}
		}
	}
	p := &Problem{Status: http.StatusNotFound, Type: "no-such-resource", Detail: "there is nothing at this path"}
	if allow != nil {
		p = &Problem{Status: http.StatusMethodNotAllowed, Type: "method-not-allowed", Detail: "this path does not have this method"}
		w.Header().Set("Allow", strings.Join(allow, ", "))
	}
	m.write(w, r, p, p)
}
