package specimen

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
)

// Context is the handler's argument: the request's context with the request. A pooled
// one belongs to another request once the handler has returned.
type Context struct {
	context.Context
	gin   *gin.Context
	route string
	began time.Time
}

// Request is the request.
func (c *Context) Request() *http.Request { return c.gin.Request }

// Route is the name of the route.
func (c *Context) Route() string { return c.route }

// SetHeader sets a field of the answer.
func (c *Context) SetHeader(name, value string) { c.gin.Header(name, value) }

// Statuser is an answer that chooses its own status.
type Statuser interface{ Status() int }

// File is an answer that is a file on disk.
type File struct{ Path string }

// Stream is an answer that is copied.
type Stream struct {
	Type string
	io.Reader
}

func (c *Context) respond(status int, res any) {
	if s, ok := res.(Statuser); ok {
		status = s.Status()
	}
	switch r := res.(type) {
	case nil:
		c.gin.Status(status)
	case File:
		c.gin.File(r.Path)
	case Stream:
		c.gin.DataFromReader(status, -1, r.Type, r.Reader, nil)
	default:
		c.gin.JSON(status, res)
	}
}

func (c *Context) fail(err error) {
	c.gin.AbortWithStatusJSON(statusOf(err), gin.H{"error": err.Error()})
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
