// Package routegin serves typed routes of package route on a gin engine, beside
// the handlers that are there.
//
//	api := routegin.NewAPI(route.Config{Errors: errors})
//	err := api.Register(engine.Group("/v1", authenticate),
//		routegin.New("GET", "/patients/:id", svc.patient).Name("getPatient"),
//		routegin.New("POST", "/patients", svc.create).Name("createPatient").Status(http.StatusCreated),
//	)
//
// Binding, validation, problems, limits and the OpenAPI document are route's:
// its package comment tells the tags, the rules and the responses. Routing,
// groups, middleware and what answers 404 and 405 are gin's.
//
// # Paths
//
// A path is one of gin's. The field of path:"id" is bound from :id, that of
// path:"rest" from *rest, without the slash that gin puts before it, so that a
// client of the OpenAPI document sends what the handler gets. A group's prefix
// may have parameters too. As gin has it, a GET route does not answer HEAD.
//
// # Middleware
//
// A typed route is the last handler of gin's chain, behind the engine's, the
// group's and its own middleware, which see the status, size and headers of its
// answer. It aborts the chain when it answers with 400 or more, as gin's own
// handlers do, and adds an error that its function returned to gin's Errors. A
// panic goes through it as it is.
package routegin

import (
	"context"

	"github.com/gin-gonic/gin"

	"github.com/spillway-go/spillway/route"
)

// Route is one operation: a method, a path of gin and a typed function. Its
// methods set and return it, so that calls chain; they are for start-up. A Route
// may be registered more than once, in several groups.
type Route struct {
	method, path string
	name         string
	settings     []func(*route.Route)
	middleware   []gin.HandlerFunc
	compile      func(method, pattern string) *route.Route // knows Req and Res
}

// New makes a route. Method may be empty for all methods of gin's Any. What is
// wrong with the types is reported by API.Register, which knows the whole path.
func New[Req, Res any](method, path string, handle func(c *Context, req Req) (Res, error)) *Route {
	var inner func(context.Context, Req) (Res, error)
	if handle != nil {
		inner = func(ctx context.Context, req Req) (Res, error) {
			c := contextOf(ctx)
			res, err := handle(c, req)
			if err != nil {
				c.Gin(func(g *gin.Context) { _ = g.Error(err) })
			}
			return res, err
		}
	}
	return &Route{method: method, path: path, compile: func(method, pattern string) *route.Route {
		return route.New(method, pattern, inner)
	}}
}

// Name is the operation's id in the OpenAPI document.
func (r *Route) Name(name string) *Route {
	r.name = name
	return r.With(func(to *route.Route) { to.Name(name) })
}

// Desc says in a sentence what the operation does.
func (r *Route) Desc(text string) *Route {
	return r.With(func(to *route.Route) { to.Describe(text) })
}

// Status is the status of a success; without it 200, or 204 for route.Empty.
func (r *Route) Status(code int) *Route {
	return r.With(func(to *route.Route) { to.Status(code) })
}

// AddMiddlewares adds gin middleware of this route; the first added is the
// outermost, inside that of the group.
func (r *Route) AddMiddlewares(middleware ...gin.HandlerFunc) *Route {
	r.middleware = append(r.middleware, middleware...)
	return r
}

// With calls set for what else a route has: limits, a limiter, documented failures.
//
//	r.With(func(r *route.Route) { r.Limiter(lim).Fails(http.StatusNotFound) })
//
// Middleware that it adds by Use runs behind gin's, and finds path values only
// by gin's means. Priority and Cost are in the context from there on: gin's own
// middleware runs before. With is called once for each registration.
func (r *Route) With(set func(*route.Route)) *Route {
	r.settings = append(r.settings, set)
	return r
}
