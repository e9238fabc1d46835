package route

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
)

// Group is a part of a Mux: routes below one prefix, with middleware and a Config of their own. A
// Group is set up before serving, like a Mux.
type Group struct {
	mux    *Mux
	parent *Group
	prefix string
	cfg    Config
	use    []func(http.Handler) http.Handler
	err    error

	stages []*Group     // this group and its ancestors that have middleware, the outermost first
	stage  int          // index of this group in stages
	chain  http.Handler // the middleware, then the next stage or the handler

	notFound, wrongMethod *refusal
}

// Group returns a group whose prefix is the prefix of g followed by prefix, such as "/fhir" or
// "/wards/{ward}". The group has a copy of the Config of g, changed by set. Functions in set must
// append to slices or replace them; in Errors the first rule that matches wins. The group's
// middleware runs inside that of g, also for paths below the prefix that no pattern matches. Add
// and Handle report errors in the prefix and the Config.
func (g *Group) Group(prefix string, set ...func(*Config)) *Group {
	inner := &Group{mux: g.mux, parent: g, prefix: g.prefix + prefix, cfg: g.cfg.copied()}
	for _, change := range set {
		change(&inner.cfg)
	}
	errs := []error{g.err}
	if g.err == nil {
		errs[0] = inner.cfg.check()
	}
	if !strings.HasPrefix(prefix, "/") || strings.HasSuffix(prefix, "/") || strings.ContainsAny(prefix, " \t") || path.Clean(prefix) != prefix ||
		strings.Contains(prefix, "...}") || strings.Contains(prefix, "{$}") {
		errs = append(errs, fmt.Errorf("route: prefix %q of a group: it begins with a slash, ends without one, and is clean", prefix))
	} else {
		g.mux.groups = append(g.mux.groups, inner)
		g.mux.paths.addGroup(inner)
	}
	inner.err = errors.Join(errs...)
	return inner
}

// Use adds middleware around all answers of g, inside the middleware of the Mux and of the groups
// that contain g. See [Mux.Use].
func (g *Group) Use(middleware ...func(http.Handler) http.Handler) {
	for _, m := range middleware {
		if m == nil {
			panic("route: Use of a nil middleware")
		}
	}
	g.use = append(g.use, middleware...)
}

// Add registers routes, as Mux.Add does. The prefix goes before their paths: in a group "/fhir" the
// path of New("GET", "/patients/{id}", …) becomes GET /fhir/patients/{id}. An empty path is the
// prefix itself. A field of path:"ward" may come from the prefix.
func (g *Group) Add(routes ...*Route) error {
	errs := []error{g.err}
	for _, r := range routes {
		if err := g.add(r); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (g *Group) add(r *Route) error {
	r = r.at(g.withPrefix(r.pattern))
	r.cfg = &g.cfg
	h, err := r.build(g.cfg)
	if err == nil && r.name != "" && g.mux.names[r.name] {
		err = fmt.Errorf("route %s: another route is called %s", r.Pattern(), r.name)
	}
	if err == nil && g.err == nil {
		err = g.handle(r.Pattern(), h, r.admission)
	}
	if err == nil && g.err == nil {
		g.mux.routes = append(g.mux.routes, r)
		g.mux.names[r.name] = true
	}
	return err
}

// Handle registers a plain handler beside the routes. The prefix goes before the
// pattern's path.
func (g *Group) Handle(pattern string, h http.Handler) error {
	if g.err != nil {
		return g.err
	}
	method, rest := "", pattern
	if i := strings.IndexAny(pattern, " \t"); i >= 0 {
		method, rest = pattern[:i+1], strings.TrimLeft(pattern[i:], " \t")
	}
	return g.handle(method+g.withPrefix(rest), h, admission{})
}

func (g *Group) handle(pattern string, h http.Handler, a admission) error {
	t := &target{g, h, a, strings.HasSuffix(pattern, "/{$}")}
	if err := g.mux.register(pattern, t); err != nil {
		return err
	}
	g.mux.targets[pattern] = t
	return nil
}

// withPrefix puts the prefix between the host of a pattern, if there is one, and its path.
func (g *Group) withPrefix(pattern string) string {
	host, rest := pattern, ""
	if i := strings.IndexByte(pattern, '/'); i >= 0 {
		host, rest = pattern[:i], pattern[i:]
	}
	return host + g.prefix + rest
}

// register adds h to the ServeMux, and returns its panic about an invalid pattern as an error.
func (m *Mux) register(pattern string, h http.Handler) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("route %s: %v", pattern, v)
		}
	}()
	m.mux.Handle(pattern, h)
	m.folders = m.folders || pattern != "/" && (strings.HasSuffix(pattern, "/") || strings.HasSuffix(pattern, "/{$}") || strings.HasSuffix(pattern, "...}"))
	m.paths.add(pattern)
	return nil
}

// target is the destination of a pattern.
type target struct {
	group     *Group
	handler   http.Handler
	admission admission
	ends      bool // the pattern ends with {$}
}

func (t *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w = innermost(w)
	if t.ends && endsInEscapedSlash(r.URL) { // ServeMux takes it for {$}
		t.group.mux.serveNotFound(w, r)
		return
	}
	t.serve(w, t.admission.apply(r))
}

// serve serves r, starting with the outermost middleware.
func (t *target) serve(w http.ResponseWriter, r *http.Request) { t.serveFrom(0, w, r) }

// serveFrom serves r, starting with the middleware at index stage.
func (t *target) serveFrom(stage int, w http.ResponseWriter, r *http.Request) {
	if stage < len(t.group.stages) {
		t.group.stages[stage].chain.ServeHTTP(w, r)
		return
	}
	t.handler.ServeHTTP(w, r)
}

// build makes the middleware chain of g. The chain of the parent must exist.
func (g *Group) build() {
	g.notFound, g.wrongMethod = g.refusal(errNotFound), g.refusal(errWrongMethod)
	if g.parent != nil {
		g.stages = slices.Clip(g.parent.stages)
	}
	if len(g.use) == 0 {
		return
	}
	g.stage = len(g.stages)
	g.stages = append(g.stages, g)
	g.chain = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mux.targetOf(r).serveFrom(g.stage+1, w, r)
	})
	for _, middleware := range slices.Backward(g.use) {
		g.chain = middleware(g.chain)
	}
}

// targetOf finds the target of a request that comes out of a middleware. A request that the Mux
// answers itself has no pattern, so its target is in its context.
func (m *Mux) targetOf(r *http.Request) *target {
	if t := m.targets[r.Pattern]; t != nil {
		return t
	}
	t, ok := r.Context().Value(targetKey{m}).(*target)
	if !ok {
		panic("route: middleware passed on a request that is not made of its own by WithContext or Clone")
	}
	return t
}

type targetKey struct{ *Mux }

// serveUnmatched answers r with h, inside the middleware of g, the group that the path of r belongs to.
func (g *Group) serveUnmatched(w http.ResponseWriter, r *http.Request, h http.Handler) {
	r.Pattern = "" // empty, as for all requests without a route
	if len(g.stages) == 0 {
		h.ServeHTTP(w, r)
		return
	}
	t := &target{group: g, handler: h}
	t.serve(w, r.WithContext(context.WithValue(r.Context(), targetKey{g.mux}, t)))
}

// groupOf returns the group of r: the group of its pattern, or else the group with the longest
// matching prefix. Of prefixes of one length, the one that has a literal segment first wins.
func (m *Mux) groupOf(r *http.Request) *Group {
	if t := m.targets[r.Pattern]; t != nil {
		return t.group
	}
	_, g := m.paths.at(r.Host, cleaned(r.URL.EscapedPath()))
	return cmp.Or(g, m.root)
}
