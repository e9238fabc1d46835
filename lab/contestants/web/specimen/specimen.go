// Package specimen is the shape of a published typed layer over gin, in a few
// hundred lines of our own, so that the lab can measure it: a function from a
// request type to a response type is a route, bound from path, query and body, and its
// request context is allocated for each request or taken from a pool. The pooled one is
// UNSAFE and kept to show that. The correct counterpart is package route.
//
// A goroutine that still has the pooled context when its handler returns, as database/sql
// does with rows, reads another request from it, or nothing. That is a data race by
// design; tests of it are skipped under -race.
package specimen

import (
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
)

// Build says how the two published builds differ.
type Build struct {
	Pooled bool // the context comes from a sync.Pool
	Short  bool // Server-Timing is put together without Sprintf
}

// Layer serves typed routes with gin.
type Layer struct {
	Engine *gin.Engine
	Build  Build
	pool   sync.Pool
}

// NewLayer returns a layer on engine.
func NewLayer(engine *gin.Engine, build Build) *Layer {
	return &Layer{Engine: engine, Build: build, pool: sync.Pool{New: func() any { return new(Context) }}}
}

// Handler is a route's function.
type Handler[Req, Res any] func(*Context, Req) (Res, error)

// Route is a route before it is added.
type Route[Req, Res any] struct {
	method, path string
	name, desc   string
	status       int
	middlewares  []gin.HandlerFunc
	handle       Handler[Req, Res]
}

// New describes a route.
func New[Req, Res any](method, path string, handle Handler[Req, Res]) *Route[Req, Res] {
	return &Route[Req, Res]{method: method, path: path, status: http.StatusOK, handle: handle}
}

// Name names the route.
func (r *Route[Req, Res]) Name(name string) *Route[Req, Res] { r.name = name; return r }

// Desc describes it.
func (r *Route[Req, Res]) Desc(text string) *Route[Req, Res] { r.desc = text; return r }

// Status sets the status of answers that do not choose their own.
func (r *Route[Req, Res]) Status(code int) *Route[Req, Res] { r.status = code; return r }

// AddMiddlewares runs them before the handler.
func (r *Route[Req, Res]) AddMiddlewares(m ...gin.HandlerFunc) *Route[Req, Res] {
	r.middlewares = append(r.middlewares, m...)
	return r
}

// AddTo adds the route to a layer.
func (r *Route[Req, Res]) AddTo(l *Layer) {
	l.Engine.Handle(r.method, r.path, append(r.middlewares, func(g *gin.Context) { serve(l, r, g) })...)
}

func serve[Req, Res any](l *Layer, r *Route[Req, Res], g *gin.Context) {
	c := l.context(g, r.name)
	if l.Build.Pooled {
		defer l.giveBack(c)
	}
	var req Req
	if err := bind(g, &req); err != nil {
		c.fail(err)
		return
	}
	c.timing(l.Build.Short)
	res, err := r.handle(c, req)
	if err != nil {
		c.fail(err)
		return
	}
	c.respond(r.status, res)
}

func (l *Layer) context(g *gin.Context, route string) *Context {
	var c *Context
	if l.Build.Pooled {
		c = l.pool.Get().(*Context)
	} else {
		c = new(Context)
	}
	c.Context, c.gin, c.route, c.began = g.Request.Context(), g, route, time.Now()
	return c
}

func (l *Layer) giveBack(c *Context) {
	*c = Context{}
	l.pool.Put(c)
}
