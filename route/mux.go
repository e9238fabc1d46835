package route

import (
	"net/http"
	"net/url"
	"path"
	"strings"
)

// Mux serves routes and describes them. Create a Mux with NewMux; add everything before serving.
//
// A request passes, from the outside in: the match of its pattern, which sets r.Pattern and the
// path values; the route's Priority and Cost, which become part of its context; the middleware of
// the Mux, of its Group and of the route; binding; the handler. Requests that no pattern matches,
// and redirects to another spelling of a path, pass the middleware of the Mux and of the group
// whose prefix the path has. For them r.Pattern is empty.
type Mux struct {
	root    *Group
	mux     *http.ServeMux
	targets map[string]*target // by pattern
	groups  []*Group           // the root group first
	routes  []*Route
	names   map[string]bool // of routes
	paths   pathTree
	folders bool // some pattern other than "/" ends with a slash, {$} or a ...} wildcard
	first   once
}

// NewMux returns a Mux without routes. Add reports errors in cfg.
func NewMux(cfg Config) *Mux {
	m := &Mux{mux: http.NewServeMux(), targets: map[string]*target{}, names: map[string]bool{}}
	m.root = &Group{mux: m, cfg: cfg, err: cfg.check()}
	m.groups = []*Group{m.root}
	return m
}

// Use adds middleware around all answers of m; the first added is the outermost. Each function is
// called once, when m serves its first request, so a limiter in a middleware is shared by all
// routes. Middleware must pass on the request it gets, or a request made from it by WithContext or
// Clone. Use may be called before or after the routes are added. Use panics if a middleware is nil.
func (m *Mux) Use(middleware ...func(http.Handler) http.Handler) { m.root.Use(middleware...) }

// Group returns a group of m, whose routes have patterns that begin with prefix. See [Group.Group].
func (m *Mux) Group(prefix string, set ...func(*Config)) *Group { return m.root.Group(prefix, set...) }

// Add registers routes. Add reports all errors of the routes and of the Config; routes without
// errors are registered nevertheless. Each route is copied: settings made later have no effect.
func (m *Mux) Add(routes ...*Route) error { return m.root.Add(routes...) }

// Handle registers a plain handler beside the routes. The OpenAPI document does not describe the
// handler.
func (m *Mux) Handle(pattern string, h http.Handler) error { return m.root.Handle(pattern, h) }

// start completes m when its first request arrives.
func (m *Mux) start() {
	_ = m.register("/", http.HandlerFunc(m.unmatched)) // unless the user has a pattern for everything
	for _, g := range m.groups {
		g.build()
	}
}

// ServeHTTP serves the routes. A path without a route, and a method that a path does not have, are
// answered with problems as well.
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.first.Do(m.start)
	path := r.URL.Path
	if r.URL.RawPath != "" { // some of the slashes may be escaped
		path = r.URL.EscapedPath()
	}
	if unclean(r) {
		m.serveNotFound(w, r)
		return
	}
	if m.mayRedirect(path) {
		w = &redirecting{w, r, m}
	}
	m.mux.ServeHTTP(w, r)
}

// endsInEscapedSlash reports whether the last segment of a path is only an escaped slash. ServeMux lets
// a pattern with {$} match such a path.
func endsInEscapedSlash(u *url.URL) bool {
	if u.RawPath == "" { // nothing is escaped
		return false
	}
	path := u.EscapedPath()
	n := len(path) - len("/%2f")
	return n >= 0 && strings.EqualFold(path[n:], "/%2f")
}

// mayRedirect reports whether ServeMux may redirect the client to another spelling of an escaped
// path: cleaned, or with a slash at the end.
func (m *Mux) mayRedirect(path string) bool {
	return m.folders && !strings.HasSuffix(path, "/") || !strings.HasPrefix(path, "/") || strings.Contains(path, "//") || strings.Contains(path, "/.")
}

// redirecting is the writer that ServeMux gets for a possible redirect. It drops the HTML page that
// ServeMux would write. Handlers get the ResponseWriter without redirecting around it.
type redirecting struct {
	http.ResponseWriter
	request *http.Request
	mux     *Mux
}

func (w *redirecting) WriteHeader(status int) {
	h := w.Header()
	location := h["Location"]
	h.Del("Content-Type")
	h.Del("Location")
	g := w.mux.groupOf(w.request)
	g.serveUnmatched(w.ResponseWriter, w.request, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if location != nil { // nil where ServeMux refuses the request, such as OPTIONS *
			w.Header()["Location"] = []string{relocated(r.URL, location[0])}
		}
		w.WriteHeader(status)
		g.cfg.observe(r, &Outcome{Status: status})
	}))
}

// relocated returns the target of the redirect for u that ServeMux sends to location. The path in
// location is unusable: its escapes are missing or doubled, and so it names another resource.
func relocated(u *url.URL, location string) string {
	to := cleaned(u.EscapedPath())
	path, query, asked := strings.Cut(location, "?")
	if strings.HasSuffix(path, "/") && !strings.HasSuffix(to, "/") {
		to += "/"
	}
	if asked {
		to += "?" + strings.ReplaceAll(query, "#", "%23") // a # in a request does not begin a fragment
	}
	return to
}

// cleaned returns the spelling of an escaped path that ServeMux redirects to.
func cleaned(escaped string) string {
	to := path.Clean("/" + escaped)
	if strings.HasSuffix(escaped, "/") && to != "/" {
		to += "/"
	}
	return to
}

// unclean reports whether r is a CONNECT to a path that is not clean. ServeMux cleans the paths of
// other methods only. In a CONNECT it matches an empty segment to a wildcard but does not record
// the value, so that PathValue returns the value of another wildcard, or panics.
func unclean(r *http.Request) bool {
	if r.Method != http.MethodConnect || r.URL.Path == "" {
		return false
	}
	escaped := r.URL.EscapedPath()
	return cleaned(escaped) != escaped
}

func (w *redirecting) Write(page []byte) (int, error) { return len(page), nil }

// innermost returns the writer that a handler gets.
func innermost(w http.ResponseWriter) http.ResponseWriter {
	if outer, ok := w.(*redirecting); ok {
		return outer.ResponseWriter
	}
	return w
}

// Problem answers with the problem for err, as the routes of the request's group do. It is for
// middleware and plain handlers that have not answered yet.
func (m *Mux) Problem(w http.ResponseWriter, r *http.Request, err error) {
	g := m.groupOf(r)
	g.cfg.Limits.withDefaults(defaults).setReadDeadline(w, r)
	status, n := g.cfg.answerError(w, r, r.Pattern, nil, err)
	g.cfg.observe(r, &Outcome{Pattern: r.Pattern, Status: status, Bytes: n, Err: err})
}
