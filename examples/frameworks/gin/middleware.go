package main

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"
)

// middleware makes gin's middleware of one of net/http: the rest of the chain runs
// where the next handler would, and is aborted if that is not called. The route is the
// pattern of the request, as with net/http, so that admission tells routes apart.
func middleware(m func(http.Handler) http.Handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		outer, passed := c.Writer, false
		defer func() { c.Writer = outer }()
		c.Request.Pattern = c.FullPath()
		m(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			passed = true
			c.Writer, c.Request = writer{outer, w}, r
			c.Next()
		})).ServeHTTP(outer, c.Request)
		if !passed {
			c.Abort()
		}
	}
}

// writer is gin's writer, through which inner sees what is written: the status, the
// body, and whether the answer is a stream.
type writer struct {
	gin.ResponseWriter
	inner http.ResponseWriter
}

func (w writer) WriteHeader(status int)            { w.inner.WriteHeader(status) }
func (w writer) Write(p []byte) (int, error)       { return w.inner.Write(p) }
func (w writer) WriteString(s string) (int, error) { return io.WriteString(w.inner, s) }
func (w writer) Flush()                            { _ = http.NewResponseController(w.inner).Flush() }
func (w writer) Unwrap() http.ResponseWriter       { return w.inner }
func (w writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.inner).Hijack()
}
