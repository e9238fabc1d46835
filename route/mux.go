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

	// Report is told errors that no rule maps, which clients see as a bare 500,
	// and responses that could not be encoded. Nil drops them.
	Report func(ctx context.Context, pattern string, err error)

	// Untimed leaves out Server-Timing on every route.
	Untimed bool
}

func (c *Config) problemBase() string {
	if c.ProblemBase == "" {
		return "urn:spillway:problem:"
	}
	return c.ProblemBase
}

// A Codec decodes bodies of one content type into the members that json tags
// name, or into a body:"json" field. It must not keep data, which is reused, and
// must refuse what it does not know itself: unknown members, depth, duplicates.
type Codec interface {
	MediaType() string // such as "application/yaml"
	Decode(data []byte, v any) error
}

// Mux serves routes and describes them. Create it with NewMux; add everything
// before serving.
type Mux struct {
	cfg     Config
	mux     *http.ServeMux
	routes  []*Route
	methods []string
	caught  bool // by a "/" of the user's own
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
		if err == nil {
			err = m.handle(r.Pattern(), h)
		}
		if err == nil && r.name != "" && slices.ContainsFunc(m.routes, func(o *Route) bool { return o.name == r.name }) {
			err = fmt.Errorf("route %s: another route is called %s", r.Pattern(), r.name)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		m.routes = append(m.routes, r)
		if r.method != "" && !slices.Contains(m.methods, r.method) {
			m.methods = append(m.methods, r.method)
			slices.Sort(m.methods)
		}
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
	m.mux.Handle(pattern, h)
	if pattern == "/" {
		m.caught = true
	}
	return nil
}

// ServeHTTP serves the routes. A path that no route has, and a method that a
// path does not have, are answered as problems as well.
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.first.Do(func() {
		if !m.caught {
			m.mux.HandleFunc("/", m.missing)
		}
	})
	m.mux.ServeHTTP(w, r)
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
	p := Problem{Status: http.StatusNotFound, Type: "no-such-resource", Detail: "there is nothing at this path"}
	if allow != nil {
		p = Problem{Status: http.StatusMethodNotAllowed, Type: "method-not-allowed", Detail: "this path does not have this method"}
		w.Header().Set("Allow", strings.Join(allow, ", "))
	}
	p.write(w, m.cfg.problemBase())
}
