// Package routegin serves typed routes of package route on a gin engine, beside existing handlers.
//
//	api := routegin.NewAPI(route.Config{Errors: errors})
//	err := api.Register(engine.Group("/v1", authenticate),
//		routegin.New("GET", "/patients/:id", svc.patient).Name("getPatient"),
//		routegin.New("POST", "/patients", svc.create).Name("createPatient").Status(http.StatusCreated),
//	)
//
// Package route does binding, validation, problems, limits and the OpenAPI document. Its package
// comment describes the tags, the rules and the responses. gin does routing, groups, middleware and
// the answers 404 and 405.
//
// # Paths
//
// A path has the syntax of gin. The field of path:"id" is bound from :id. The field of path:"rest"
// is bound from *rest, without the slash that gin puts before the value, so that a client of the
// OpenAPI document sends exactly the value that the handler gets. A group's prefix may have
// parameters too. As usual in gin, a GET route does not answer HEAD.
//
// # Middleware
//
// A typed route is the last handler of gin's chain, inside the middleware of the engine, of the
// group and of the route. This middleware sees the status, size and headers of the answer. A typed
// route aborts the chain when it answers with 400 or more, as gin's own handlers do. It adds the
// error that its function returned to gin's Errors. It does not recover panics.
//
// # Cost
//
// The module brings gin. "go test ./routegin -run Alloc" tests the allocations, and "go test
// ./routegin -run '^$' -bench Gin" prints the time beside a gin handler written by hand.
//
// # Pitfalls
//
//   - The context of a handler is no *gin.Context, because gin reuses a *gin.Context after its
//     request. [Context.Gin] lends the *gin.Context while the handler runs.
//
// # When not to use it
//
// A service without gin uses package route.
package routegin

import (
	"context"

	"github.com/gin-gonic/gin"

	"github.com/spillway-go/spillway/route"
)

// Route is one operation: a method, a path of gin and a typed function. Its methods change the
// Route and return it, so that calls chain; they are for start-up. A Route may be registered more
// than once, in several groups.
type Route struct {
	method, path string
	name         string
	settings     []func(*route.Route)
	middleware   []gin.HandlerFunc
	compile      func(method, pattern string) *route.Route // made for Req and Res
}

// New makes a route. An empty method means all methods of gin's Any. API.Register reports errors in
// the types, because only API.Register knows the whole path.
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

// Name sets the operation's id in the OpenAPI document.
func (r *Route) Name(name string) *Route {
	r.name = name
	return r.With(func(to *route.Route) { to.Name(name) })
}

// Status sets the status of a success. The default is 200, or 204 for route.Empty.
func (r *Route) Status(code int) *Route {
	return r.With(func(to *route.Route) { to.Status(code) })
}

// AddMiddlewares adds gin middleware to this route; the first added is the outermost. It runs
// inside the middleware of the group.
func (r *Route) AddMiddlewares(middleware ...gin.HandlerFunc) *Route {
	r.middleware = append(r.middleware, middleware...)
	return r
}

// With calls set for all other settings of a route: limits, a limiter, descriptions.
//
//	r.With(func(r *route.Route) { r.Limiter(lim).Describe("One patient.") })
//
// Middleware that set adds by Use runs inside gin's middleware, and finds no path values by
// r.PathValue. Priority and Cost enter the context after gin's middleware, which does not see them.
// set is called once for each registration.
func (r *Route) With(set func(*route.Route)) *Route {
	r.settings = append(r.settings, set)
	return r
}
