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
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
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
	engine *gin.Engine
	build  Build
	pool   sync.Pool
}

// NewLayer returns a layer on engine.
func NewLayer(engine *gin.Engine, build Build) *Layer {
	return &Layer{engine: engine, build: build, pool: sync.Pool{New: func() any { return new(Context) }}}
}

// Route is a route before it is added.
type Route[Req, Res any] struct {
	method, path, name, desc string
	status                   int
	middlewares              []gin.HandlerFunc
	handle                   func(*Context, Req) (Res, error)
}

// New describes a route.
func New[Req, Res any](method, path string, handle func(*Context, Req) (Res, error)) *Route[Req, Res] {
	return &Route[Req, Res]{method: method, path: path, status: http.StatusOK, handle: handle}
}

// Name, Desc, Status (of answers that do not choose their own) and AddMiddlewares say
// more about it.
func (r *Route[Req, Res]) Name(name string) *Route[Req, Res] { r.name = name; return r }
func (r *Route[Req, Res]) Desc(text string) *Route[Req, Res] { r.desc = text; return r }
func (r *Route[Req, Res]) Status(code int) *Route[Req, Res]  { r.status = code; return r }
func (r *Route[Req, Res]) AddMiddlewares(m ...gin.HandlerFunc) *Route[Req, Res] {
	r.middlewares = append(r.middlewares, m...)
	return r
}

// AddTo adds the route to a layer.
func (r *Route[Req, Res]) AddTo(l *Layer) {
	l.engine.Handle(r.method, r.path, append(r.middlewares, func(g *gin.Context) { serve(l, r, g) })...)
}

// Context is the handler's argument: the request's context with the request. A pooled
// one belongs to another request once the handler has returned.
type Context struct {
	context.Context
	gin   *gin.Context
	route string
	began time.Time
}

func serve[Req, Res any](l *Layer, r *Route[Req, Res], g *gin.Context) {
	var c *Context
	if l.build.Pooled {
		c = l.pool.Get().(*Context)
		defer l.giveBack(c)
	} else {
		c = new(Context)
	}
	c.Context, c.gin, c.route, c.began = g.Request.Context(), g, r.name, time.Now()
	var req Req
	var res any
	err := bind(g, &req)
	if err == nil {
		c.timing(l.build.Short)
		res, err = r.handle(c, req)
	}
	if err != nil {
		g.AbortWithStatusJSON(statusOf(err), gin.H{"error": err.Error()})
		return
	}
	respond(g, r.status, res)
}

func (l *Layer) giveBack(c *Context) {
	*c = Context{}
	l.pool.Put(c)
}

// timing says how long decoding took. The text is the same in both builds.
func (c *Context) timing(short bool) {
	ms := float64(time.Since(c.began).Nanoseconds()) / 1e6
	if short {
		c.gin.Header("Server-Timing", "decode;dur="+strconv.FormatFloat(ms, 'f', 3, 64))
		return
	}
	c.gin.Header("Server-Timing", fmt.Sprintf("decode;dur=%.3f", ms))
}

// Statuser is an answer that chooses its own status.
type Statuser interface{ Status() int }

// File is an answer that is a file on disk.
type File struct{ Path string }

// Stream is an answer that is copied.
type Stream struct {
	Type string
	io.Reader
}

func respond(g *gin.Context, status int, res any) {
	if s, ok := res.(Statuser); ok {
		status = s.Status()
	}
	switch r := res.(type) {
	case nil:
		g.Status(status)
	case File:
		g.File(r.Path)
	case Stream:
		g.DataFromReader(status, -1, r.Type, r.Reader, nil)
	default:
		g.JSON(status, res)
	}
}
