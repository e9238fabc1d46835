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

// Context is the context of one request, with gin's data about the request. A Context is never
// reused and holds copies, so it never shows another request. A goroutine may keep it after the
// handler has returned: its values stay the same, but the context has ended. Use
// context.WithoutCancel for work that continues. gin reuses its own context immediately. The only
// access to gin's context is the method Gin, which stops working when the handler returns.
type Context struct {
	// Request is the request as the route got it. The route reads its body.
	Request *http.Request

	parent
	call *call
}

// parent is the context that a Context derives from. Its deadline is that of the request. Its Done is
// closed when the request has ended: the client has left, a time limit has passed, or the request has
// been answered.
type parent = context.Context

// call holds the data that all contexts of one request share. Only live changes.
type call struct {
	first  Context // the handler's Context, unless a limit or middleware derived another
	rest   string  // the name of the path's *parameter
	params gin.Params
	keys   map[any]any
	space  [2]gin.Param // memory for params, if they are few

	mu   sync.Mutex
	live *gin.Context // gin's context; nil after the handler has returned
}

func newCall(g *gin.Context, rest string) *call {
	c := &call{rest: rest, live: g}
	c.params = append(c.space[:0], g.Params...)
	if len(g.Keys) > 0 {
		c.keys = g.Copy().Keys
	}
	c.first = Context{Request: g.Request, parent: g.Request.Context(), call: c}
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

// contextOf returns the handler's Context: ctx itself, or a Context around ctx if a limit or
// middleware derived ctx.
func contextOf(ctx context.Context) *Context {
	c := find(ctx)
	if ctx == context.Context(c) {
		return c
	}
	return &Context{Request: c.Request, parent: ctx, call: c.call}
}

// Value returns what middleware has Set on gin's context before the handler began, or else a value of
// the request's context.
func (c *Context) Value(key any) any {
	if key == (contextKey{}) {
		return c
	}
	if v, ok := c.call.keys[key]; ok {
		return v
	}
	return c.parent.Value(key)
}

// Gin calls f with gin's own context, for features that only gin's context has: Set for middleware
// that waits in Next, cookies, the client's address, libraries that require a gin.Context. After
// the handler has returned, Gin does not call f and reports false. The handler's return waits for
// f. f must not keep its argument, nor call Gin.
func (c *Context) Gin(f func(g *gin.Context)) bool {
	c.call.mu.Lock()
	defer c.call.mu.Unlock()
	if c.call.live == nil {
		return false
	}
	f(c.call.live)
	return true
}

// pathValue is the Config.PathValue for routes with net/http middleware.
func pathValue(r *http.Request, name string) string {
	return find(r.Context()).call.PathValue(name)
}

// PathValue returns a path value, for routes without net/http middleware.
func (c *call) PathValue(name string) string {
	value := c.params.ByName(name)
	if name == c.rest {
		value = strings.TrimPrefix(value, "/")
	}
	return value
}

// end makes Gin stop working. end is deferred. A panic continues with its value and its stack. For
// http.ErrAbortHandler, end first breaks the connection. Otherwise gin's Recovery, which swallows
// http.ErrAbortHandler, would end a partial answer as if it were complete.
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
		_ = http.NewResponseController(g.Writer).SetWriteDeadline(time.Unix(1, 0)) // writes fail from now on
	}
	panic(v)
}
