package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/valyala/fasthttp"
)

// harness sends a contestant a request and returns its answer, which is valid until the
// next one. It is for one goroutine.
type harness func() (status int, body []byte)

// newHarness makes the harness that fits the contestant. Published is a new
// request and a new recorder for every iteration; otherwise both are reused.
func newHarness(h handlers, r request, published bool) harness {
	switch {
	case h.fast != nil:
		ctx, sent := new(fasthttp.RequestCtx), []byte(r.Body)
		return func() (int, []byte) {
			ctx.Request.Reset() // it is parsed again only when it is filled again
			ctx.Response.Reset()
			ctx.ResetUserValues()
			ctx.Request.Header.SetMethod(r.Method)
			ctx.Request.SetRequestURI(r.Target)
			ctx.Request.Header.SetHost("example.org")
			if r.Type != "" {
				ctx.Request.Header.SetContentType(r.Type)
			}
			ctx.Request.SetBodyRaw(sent)
			h.fast(ctx)
			return ctx.Response.StatusCode(), ctx.Response.Body()
		}
	case published:
		return func() (int, []byte) {
			w := httptest.NewRecorder()
			h.http.ServeHTTP(w, r.new())
			return w.Code, w.Body.Bytes()
		}
	}
	return newReused(h.http, r).send
}

func (r request) new() *http.Request {
	out := httptest.NewRequest(r.Method, r.Target, strings.NewReader(r.Body))
	if r.Type != "" {
		out.Header.Set("Content-Type", r.Type)
	}
	return out
}

// reused is a request and a response writer that are reused. The request is restored
// from a copy, because handlers and muxes modify it.
type reused struct {
	handler           http.Handler
	template, request http.Request
	reader            bytes.Reader
	sent, written     []byte
	header            http.Header
	code              int
}

func newReused(to http.Handler, r request) *reused {
	h := &reused{handler: to, template: *r.new(), sent: []byte(r.Body), header: http.Header{}}
	h.template.Body = http.NoBody
	if r.Body != "" {
		h.template.Body = io.NopCloser(&h.reader)
	}
	return h
}

func (h *reused) send() (int, []byte) {
	h.code, h.written = http.StatusOK, h.written[:0]
	clear(h.header)
	h.reader.Reset(h.sent)
	h.request = h.template
	h.handler.ServeHTTP(h, &h.request)
	return h.code, h.written
}

// Header, WriteHeader and Write make it an http.ResponseWriter.
func (h *reused) Header() http.Header  { return h.header }
func (h *reused) WriteHeader(code int) { h.code = code }
func (h *reused) Write(b []byte) (int, error) {
	h.written = append(h.written, b...)
	return len(b), nil
}
