package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
)

func (r request) new() *http.Request {
	out := httptest.NewRequest(r.Method, r.Target, strings.NewReader(r.Body))
	if r.Type != "" {
		out.Header.Set("Content-Type", r.Type)
	}
	return out
}

// harness sends a contestant a request again and again, for one goroutine. Request and response
// writer are reused. The request is restored from a copy, because handlers and muxes modify it.
type harness struct {
	handler           http.Handler
	template, request http.Request
	reader            bytes.Reader
	sent, written     []byte
	header            http.Header
	code              int
}

func newHarness(to http.Handler, r request) *harness {
	h := &harness{handler: to, template: *r.new(), sent: []byte(r.Body), header: http.Header{}}
	h.template.Body = http.NoBody
	if r.Body != "" {
		h.template.Body = io.NopCloser(&h.reader)
	}
	return h
}

// send returns the answer, which is valid until the next one.
func (h *harness) send() (int, []byte) {
	h.code, h.written = http.StatusOK, h.written[:0]
	clear(h.header)
	h.reader.Reset(h.sent)
	h.request = h.template
	h.handler.ServeHTTP(h, &h.request)
	return h.code, h.written
}

// Header, WriteHeader and Write make it an http.ResponseWriter.
func (h *harness) Header() http.Header  { return h.header }
func (h *harness) WriteHeader(code int) { h.code = code }
func (h *harness) Write(b []byte) (int, error) {
	h.written = append(h.written, b...)
	return len(b), nil
}
