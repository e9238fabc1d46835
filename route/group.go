package route

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Group is a part of a Mux: routes below one prefix, with middleware and a Config of
// their own. Like a Mux it is for start-up.
type Group struct {
	mux      *Mux
	parent   *Group
	prefix   string
	segments []string // of the prefix
	cfg      Config
	use      []func(http.Handler) http.Handler
	err      error

	stages []*Group     // those with middleware on the way here, the outermost first
	stage  int          // this one's place among them
	chain  http.Handler // the middleware, and what is behind it
}

// Group returns a group whose prefix is that of g and prefix, such as "/fhir" or
// "/wards/{ward}". It has the Config of g as set changes it: slices are to be appended
// to or replaced, and of Errors the first rule that matches wins. Its middleware runs
// inside that of g, and does so for paths below the prefix that no pattern matches as
// well. What is wrong with it is reported by its Add and Handle.
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
		inner.segments = strings.Split(inner.prefix[1:], "/")
		g.mux.groups = append(g.mux.groups, inner)
	}
	inner.err = errors.Join(errs...)
	return inner
}

// Use adds middleware around all that g answers, inside that of the groups it is in
// and of the Mux. See Mux.Use.
func (g *Group) Use(middleware ...func(http.Handler) http.Handler) {
	for _, m := range middleware {
		if m == nil {
			panic("route: Use of a nil middleware")
		}
	}
	g.use = append(g.use, middleware...)
}

// Add registers routes, as Mux.Add does. The prefix goes before their paths: that of
// New("GET", "/patients/{id}", …) becomes GET /fhir/patients/{id}, and an empty one is
// the prefix itself. A field of path:"ward" may come from the prefix.
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
	r = r.at(g.below(r.pattern))
	r.cfg = &g.cfg
	h, err := r.build(g.cfg)
	if err == nil && r.name != "" && slices.ContainsFunc(g.mux.routes, func(o *Route) bool { return o.name == r.name }) {
		err = fmt.Errorf("route %s: another route is called %s", r.Pattern(), r.name)
	}
	if err == nil && g.err == nil {
		err = g.handle(r.Pattern(), h, r.mark)
	}
	if err == nil && g.err == nil {
		g.mux.routes = append(g.mux.routes, r)
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
	return g.handle(method+g.below(rest), h, mark{})
}

func (g *Group) handle(pattern string, h http.Handler, mark mark) error {
	t := &target{g, h, mark}
	if err := g.mux.register(pattern, t); err != nil {
		return err
	}
	g.mux.targets[pattern] = t
	return nil
}

// below puts the prefix between the host of a pattern, if there is one, and its path.
func (g *Group) below(pattern string) string {
	host, rest := pattern, ""
	if i := strings.IndexByte(pattern, '/'); i >= 0 {
		host, rest = pattern[:i], pattern[i:]
	}
	return host + g.prefix + rest
}

// register gives h to ServeMux, which panics about patterns it cannot accept.
func (m *Mux) register(pattern string, h http.Handler) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("route %s: %v", pattern, v)
		}
	}()
	m.mux.Handle(pattern, h)
	m.folders = m.folders || pattern != "/" && (strings.HasSuffix(pattern, "/") || strings.HasSuffix(pattern, "/{$}") || strings.HasSuffix(pattern, "...}"))
	if i := strings.IndexAny(pattern, " \t"); i > 0 && !slices.Contains(m.methods, pattern[:i]) {
		m.methods = append(m.methods, pattern[:i])
		slices.Sort(m.methods)
	}
	return nil
}

// target is what a pattern leads to.
type target struct {
	group   *Group
	handler http.Handler
	mark    mark
}

func (t *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t.enter(innermost(w), t.mark.on(r))
}

// enter serves r, from the outermost middleware on.
func (t *target) enter(w http.ResponseWriter, r *http.Request) { t.from(0, w, r) }

// from serves r from that stage on.
func (t *target) from(stage int, w http.ResponseWriter, r *http.Request) {
	if stage < len(t.group.stages) {
		t.group.stages[stage].chain.ServeHTTP(w, r)
		return
	}
	t.handler.ServeHTTP(w, r)
}

// build makes the chain of g. That of its parent is made.
func (g *Group) build() {
	if g.parent != nil {
		g.stages = slices.Clip(g.parent.stages)
	}
	if len(g.use) == 0 {
		return
	}
	g.stage = len(g.stages)
	g.stages = append(g.stages, g)
	g.chain = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mux.targetOf(r).from(g.stage+1, w, r)
	})
	for _, middleware := range slices.Backward(g.use) {
		g.chain = middleware(g.chain)
	}
}

// targetOf finds again, behind a middleware, where a request was going. What the Mux
// answers itself has no pattern to find it by.
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

// itself has the Mux answer r, behind the middleware of the group that the path is of.
func (m *Mux) itself(w http.ResponseWriter, r *http.Request, answer func(*Group, http.ResponseWriter, *http.Request)) {
	r.Pattern = "" // of none of the routes, as ServeMux itself has it
	g := m.groupOf(r)
	t := &target{group: g, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(g, w, r) })}
	if len(g.stages) > 0 {
		r = r.WithContext(context.WithValue(r.Context(), targetKey{m}, t))
	}
	t.enter(w, r)
}

// groupOf returns the group that r is of: that of its pattern, or else the one of the
// longest prefix.
func (m *Mux) groupOf(r *http.Request) *Group {
	if t := m.targets[r.Pattern]; t != nil {
		return t.group
	}
	g, segments := m.root, strings.Split(cleaned(r.URL.EscapedPath())[1:], "/")
	for i, s := range segments {
		if plain, err := url.PathUnescape(s); err == nil {
			segments[i] = plain // a slash in it separates nothing
		}
	}
	for _, other := range m.groups {
		if len(other.segments) > len(g.segments) && other.covers(segments) {
			g = other
		}
	}
	return g
}

// covers reports whether a path of these segments is below the prefix.
func (g *Group) covers(segments []string) bool {
	if len(segments) < len(g.segments) {
		return false
	}
	for i, s := range g.segments {
		if wild := strings.HasPrefix(s, "{"); s != segments[i] && !wild || segments[i] == "" {
			return false
		}
	}
	return true
}
