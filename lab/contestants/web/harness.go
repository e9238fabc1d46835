package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"
)

// harness sends a contestant one request after the other. It is for one goroutine.
type harness interface {
	send()
	status() int // of the last answer
	body() []byte
}

// newHarness makes the harness that fits the contestant. Published is a new
// request and a new recorder for every iteration; otherwise both are reused.
func newHarness(h handlers, r request, published bool) harness {
	switch {
	case h.fast != nil:
		return newFast(h.fast, r)
	case published:
		return &asPublished{handler: h.http, request: r}
	}
	return newReused(h.http, r)
}

// reused is a request and a response writer that are reused. The request is restored
// from a copy, because handlers and muxes modify it.
type reused struct {
	handler  http.Handler
	template http.Request
	request  http.Request
	reader   bytes.Reader
	sent     []byte
	header   http.Header
	code     int
	written  []byte
}

func newReused(h http.Handler, r request) *reused {
	u, err := url.Parse(r.Target)
	if err != nil {
		panic(err) // the requests are ours
	}
	h2 := &reused{handler: h, sent: []byte(r.Body), header: http.Header{}}
	h2.template = *(&http.Request{
		Method: r.Method, URL: u, Host: "example.org", Header: http.Header{}, RequestURI: r.Target, RemoteAddr: "192.0.2.1:1234",
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(r.Body)), Body: http.NoBody,
	}).WithContext(context.Background())
	if r.Type != "" {
		h2.template.Header.Set("Content-Type", r.Type)
	}
	if r.Body != "" {
		h2.template.Body = struct {
			io.Reader
			io.Closer
		}{&h2.reader, io.NopCloser(nil)}
	}
	return h2
}

func (h *reused) send() {
	h.code, h.written = http.StatusOK, h.written[:0]
	clear(h.header)
	h.reader.Reset(h.sent)
	h.request = h.template
	h.handler.ServeHTTP(h, &h.request)
}

func (h *reused) status() int  { return h.code }
func (h *reused) body() []byte { return h.written }

// Header, WriteHeader and Write make it an http.ResponseWriter.
func (h *reused) Header() http.Header  { return h.header }
func (h *reused) WriteHeader(code int) { h.code = code }
func (h *reused) Write(b []byte) (int, error) {
	h.written = append(h.written, b...)
	return len(b), nil
}

// asPublished makes a new request and recorder for each iteration.
type asPublished struct {
	handler http.Handler
	request request
	last    *httptest.ResponseRecorder
}

func (h *asPublished) send() {
	r := httptest.NewRequest(h.request.Method, h.request.Target, strings.NewReader(h.request.Body))
	if h.request.Type != "" {
		r.Header.Set("Content-Type", h.request.Type)
	}
	h.last = httptest.NewRecorder()
	h.handler.ServeHTTP(h.last, r)
}

func (h *asPublished) status() int  { return h.last.Code }
func (h *asPublished) body() []byte { return h.last.Body.Bytes() }

// fast is the same for a fasthttp handler, whose request is parsed again only when it
// is filled again.
type fast struct {
	handler fasthttp.RequestHandler
	request request
	sent    []byte
	ctx     fasthttp.RequestCtx
}

func newFast(h fasthttp.RequestHandler, r request) *fast {
	return &fast{handler: h, request: r, sent: []byte(r.Body)}
}

func (h *fast) send() {
	h.ctx.Request.Reset()
	h.ctx.Response.Reset()
	h.ctx.ResetUserValues()
	h.ctx.Request.Header.SetMethod(h.request.Method)
	h.ctx.Request.SetRequestURI(h.request.Target)
	h.ctx.Request.Header.SetHost("example.org")
	if h.request.Type != "" {
		h.ctx.Request.Header.SetContentType(h.request.Type)
	}
	h.ctx.Request.SetBodyRaw(h.sent)
	h.handler(&h.ctx)
}

func (h *fast) status() int  { return h.ctx.Response.StatusCode() }
func (h *fast) body() []byte { return h.ctx.Response.Body() }
