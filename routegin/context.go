package routegin

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
)

// Context is the context of one request, with what gin knows of it. It is made
// for the request and never reused: a goroutine that keeps it when the handler
// has returned reads what it always read, by then from a context that has ended
// (context.WithoutCancel is for work that goes on). It never sees another
// request, for it holds copies. gin's own context is reused at once; the one way
// to it is Gin, which closes when the handler returns.
type Context struct {
	// Request is the request as it came to the route, which reads its body.
	Request *http.Request

	ctx  context.Context
	call *call
}

// call is what all contexts of one request share. Only live changes.
type call struct {
	first  Context // the handler's, unless a limit or middleware derived another
	rest   string  // the name of the path's *parameter
	path   string
	params gin.Params
	keys   map[any]any
	space  [2]gin.Param // of params, as long as they are few

	mu   sync.Mutex
	live *gin.Context // gin's own, until the handler has returned
}

func newCall(g *gin.Context, rest string) *call {
	c := &call{rest: rest, path: g.FullPath(), live: g}
	c.params = append(c.space[:0], g.Params...)
	if len(g.Keys) > 0 {
		c.keys = g.Copy().Keys
	}
	c.first = Context{Request: g.Request, ctx: g.Request.Context(), call: c}
	return c
}

type contextKey struct{}

// find returns the Context in ctx.
func find(ctx context.Context) *Context {
	if c, ok := ctx.(*Context); ok {
		return c
	}
	c, ok := ctx.Value(contextKey{}).(*Context)
	if !ok {
		panic("routegin: middleware gave the request a context that is not derived from its own")
	}
	return c
}

// contextOf is what the handler is given: ctx itself, or the Context in it with
// all that a limit or middleware has put around it.
func contextOf(ctx context.Context) *Context {
	c := find(ctx)
	if ctx == context.Context(c) {
		return c
	}
	return &Context{Request: c.Request, ctx: ctx, call: c.call}
}

// Deadline is that of the request.
func (c *Context) Deadline() (time.Time, bool) { return c.ctx.Deadline() }

// Done is closed when the request has ended: when the client has left, a limit
// on its time has passed, or it has been answered.
func (c *Context) Done() <-chan struct{} { return c.ctx.Done() }

// Err tells why Done is closed.
func (c *Context) Err() error { return c.ctx.Err() }

// Value finds a string in what middleware has Set, as gin's context does, and
// any key in the request's context.
func (c *Context) Value(key any) any {
	switch key := key.(type) {
	case contextKey:
		return c
	case string:
		if v, ok := c.call.keys[key]; ok {
			return v
		}
	}
	return c.ctx.Value(key)
}

// Get returns what middleware has Set on gin's context before the handler began.
func (c *Context) Get(key any) (value any, exists bool) {
	value, exists = c.call.keys[key]
	return value, exists
}

// Param returns a path parameter as gin has it: that of *rest with its slash.
func (c *Context) Param(name string) string { return c.call.params.ByName(name) }

// FullPath is the path that the route was registered for, such as
// "/v1/patients/:id".
func (c *Context) FullPath() string { return c.call.path }

// Gin calls f with gin's own context, for what only that can: Set for middleware
// that waits in Next, cookies, the client's address, libraries that ask for it.
// Once the handler has returned, f is not called and Gin reports false. The
// handler's return waits for f. f must not keep what it is given, nor call Gin.
func (c *Context) Gin(f func(g *gin.Context)) bool {
	c.call.mu.Lock()
	defer c.call.mu.Unlock()
	if c.call.live == nil {
		return false
	}
	f(c.call.live)
	return true
}

// pathValue is route's way to path values behind middleware.
func pathValue(r *http.Request, name string) string {
	return find(r.Context()).call.PathValue(name)
}

// PathValue is the short way.
func (c *call) PathValue(name string) string {
	value := c.params.ByName(name)
	if name == c.rest {
		value = strings.TrimPrefix(value, "/")
	}
	return value
}

// end closes Gin. It is deferred. A panic goes on with its value and its stack;
// http.ErrAbortHandler cuts the connection first: gin's Recovery swallows it and
// would end a broken answer as if it were whole.
func (c *call) end() {
	v := recover()
	c.mu.Lock()
	g := c.live
	c.live = nil
	c.mu.Unlock()
	if v == nil {
		return
	}
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		_ = http.NewResponseController(g.Writer).SetWriteDeadline(time.Unix(1, 0)) // else the server has nothing to cut
	}
	panic(v)
}
