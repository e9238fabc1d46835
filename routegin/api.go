package routegin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/spillway-go/spillway/route"
)

// API registers routes on gin, in any groups, and describes them in one document. Create an API
// with NewAPI; register everything before serving.
type API struct {
	cfg    route.Config
	routes []*route.Route
	names  []string
}

// NewAPI returns an API without routes. The zero Config works. NewAPI ignores cfg.PathValue.
func NewAPI(cfg route.Config) *API {
	cfg.PathValue = pathValue
	return &API{cfg: cfg}
}

// Router is a *gin.Engine or a *gin.RouterGroup.
type Router interface {
	BasePath() string
	Handle(method, path string, handlers ...gin.HandlerFunc) gin.IRoutes
}

// Register adds routes to an engine or a group. Register reports all errors of the routes,
// including those that gin would panic about; routes without errors are registered nevertheless.
func (a *API) Register(to Router, routes ...*Route) error {
	var errs []error
	for _, r := range routes {
		if err := a.register(to, r); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (a *API) register(to Router, r *Route) error {
	full := join(to.BasePath(), r.path)
	pattern, rest, err := translate(full)
	if err != nil {
		return fmt.Errorf("route %s %s: %w", r.method, full, err)
	}
	if r.name != "" && slices.Contains(a.names, r.name) {
		return fmt.Errorf("route %s %s: another route is called %s", r.method, full, r.name)
	}
	compiled := r.compile(r.method, pattern)
	for _, set := range r.settings {
		set(compiled)
	}
	h, err := compiled.Handler(a.cfg)
	if err != nil {
		return err
	}
	chain := append(slices.Clone(r.middleware), handler(h, rest))
	methods := []string{r.method}
	if r.method == "" {
		methods = every
	}
	for _, method := range methods {
		if err := handle(to, method, r.path, chain); err != nil {
			return fmt.Errorf("route %s %s: %w", method, full, err)
		}
	}
	a.routes, a.names = append(a.routes, compiled), append(a.names, r.name)
	return nil
}

// every lists all methods, as gin's Any does.
var every = []string{
	http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodHead,
	http.MethodOptions, http.MethodDelete, http.MethodConnect, http.MethodTrace,
}

// handle registers chain; gin panics about paths it cannot accept.
func handle(to Router, method, path string, chain []gin.HandlerFunc) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	to.Handle(method, path, chain...)
	return nil
}

// join puts a group's prefix before a path, as gin does.
func join(base, relative string) string {
	if relative == "" {
		return base
	}
	full := path.Join(base, relative)
	if relative[len(relative)-1] == '/' && full[len(full)-1] != '/' {
		full += "/"
	}
	return full
}

// contextHandler is what route.Route.Handler returns for a route without middleware for net/http:
// ServeContext is ServeHTTP with ctx, and with values for the path values.
type contextHandler interface {
	ServeContext(ctx context.Context, w http.ResponseWriter, r *http.Request, values interface{ PathValue(name string) string })
}

// handler serves h, a compiled route, in gin's chain.
func handler(h http.Handler, rest string) gin.HandlerFunc {
	direct, _ := h.(contextHandler) // nil if the route has middleware for net/http
	return func(g *gin.Context) {
		c := newCall(g, rest)
		defer c.end()
		w := g.Writer
		if w.Status() != http.StatusOK && !w.Written() {
			// 200 is the default of net/http. A status set earlier was not meant for this answer.
			w.WriteHeader(http.StatusOK)
		}
		if direct != nil {
			direct.ServeContext(&c.first, w, g.Request, c)
		} else {
			h.ServeHTTP(w, g.Request.WithContext(&c.first))
		}
		if w.Status() >= http.StatusBadRequest {
			g.Abort()
		}
	}
}

// OpenAPI returns the OpenAPI 3.1 document of the routes registered so far, for a file or for a gin
// handler that serves it as application/json.
func (a *API) OpenAPI(info route.Info) ([]byte, error) {
	return route.Describe(a.cfg, info, a.routes...)
}
