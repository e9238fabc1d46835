// Package specimen is the shape of a published typed layer over gin, in a hundred lines
// of our own, so that the lab can measure it: a function from a request type to a response
// type is a route, bound from path, query and body, and its request context is allocated
// for each request or taken from a pool. The pooled one is UNSAFE and kept to show that.
// The correct counterpart is package route.
//
// A goroutine that still has the pooled context when its handler returns, as database/sql
// does with rows, reads another request from it, or nothing. That is a data race by
// design; tests of it are skipped under -race.
package specimen

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/binding"
)

// Build says how the two builds differ. The published ones differed elsewhere, too: in the pooled one
// Server-Timing was put together without Sprintf.
type Build struct {
	Pooled   bool // the context comes from a sync.Pool
	Explicit bool // the pooled context is given back without defer, so that a panic loses it
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

// Context is the handler's argument: the request's context with the request. A pooled
// one belongs to another request once the handler has returned.
type Context struct {
	context.Context
	gin   *gin.Context
	route string
	began time.Time
}

// Add adds a route to a layer, which answers with status what handle returns.
func Add[Req, Res any](l *Layer, method, path string, status int, handle func(*Context, Req) (Res, error)) {
	l.engine.Handle(method, path, func(g *gin.Context) {
		var c *Context
		if l.build.Pooled {
			c = l.pool.Get().(*Context)
			if !l.build.Explicit {
				defer l.giveBack(c)
			}
		} else {
			c = new(Context)
		}
		c.Context, c.gin, c.route, c.began = g.Request.Context(), g, path, time.Now()
		var req Req
		var res any
		err := bind(g, &req)
		if err == nil {
			c.timing()
			res, err = handle(c, req)
		}
		switch {
		case err == nil:
			g.JSON(status, res)
		case errors.Is(err, errOtherType):
			g.AbortWithStatusJSON(http.StatusUnsupportedMediaType, gin.H{"error": err.Error()})
		default:
			g.AbortWithStatusJSON(http.StatusBadRequest, gin.H{"error": err.Error()})
		}
		if l.build.Explicit {
			l.giveBack(c)
		}
	})
}

func (l *Layer) giveBack(c *Context) {
	*c = Context{}
	l.pool.Put(c)
}

// timing says how long decoding took.
func (c *Context) timing() {
	c.gin.Header("Server-Timing", fmt.Sprintf("decode;dur=%.3f", float64(time.Since(c.began).Nanoseconds())/1e6))
}

// bindings decode bodies by content type. The published layer knows some more.
var bindings = map[string]binding.Binding{binding.MIMEJSON: binding.JSON, binding.MIMEPOSTForm: binding.FormPost}

var (
	errNoType    = errors.New("missing content type")
	errOtherType = errors.New("unsupported content type")
)

// bind fills req from path, query and body, the later over the earlier. gin checks it
// after the last of them.
func bind(g *gin.Context, req any) error {
	if len(g.Params) > 0 {
		path := make(map[string][]string, len(g.Params))
		for _, p := range g.Params {
			path[p.Key] = []string{p.Value}
		}
		if err := binding.MapFormWithTag(req, path, "uri"); err != nil {
			return err
		}
	}
	if g.Request.URL.RawQuery != "" {
		if err := binding.MapFormWithTag(req, g.Request.URL.Query(), "query"); err != nil {
			return err
		}
	}
	kind := g.ContentType()
	body, known := bindings[kind]
	switch {
	case g.Request.Body == nil || g.Request.ContentLength == 0:
		return binding.Validator.ValidateStruct(req)
	case kind == "":
		return errNoType
	case !known:
		return errOtherType
	}
	return g.ShouldBindWith(req, body)
}
