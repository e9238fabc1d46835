package main

import (
	"bytes"
	"net"
	"net/http"

	"github.com/valyala/fasthttp"

	"github.com/spillway-go/spillway/lab/ladder"
)

// serve serves until the listener is closed.
func serve(s ladder.Server, l net.Listener) error {
	switch s.Kind {
	case ladder.NetHTTP:
		handler := http.HandlerFunc(answerStrings)
		if s.Asks != "" {
			handler = answerAny
		}
		return (&http.Server{Handler: handler}).Serve(l)
	case ladder.NetHTTPReads:
		return (&http.Server{Handler: http.HandlerFunc(readAgain)}).Serve(l)
	case ladder.FastHTTP:
		handler := answerFast
		if s.Asks != "" {
			handler = answerFastAny
		}
		return fastHTTP(handler).Serve(l)
	}
	return serveByConnection(l, s.Save)
}

// readAgain reads a header again and again before it answers.
func readAgain(w http.ResponseWriter, r *http.Request) {
	length := 0
	for range ladder.MoreReads {
		length += len(r.Header.Get(echoed))
	}
	if length == 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	answerStrings(w, r)
}

// fastHTTP is fasthttp's server. It sends only fields that the other servers send too.
func fastHTTP(handler fasthttp.RequestHandler) *fasthttp.Server {
	return &fasthttp.Server{Handler: handler, NoDefaultServerHeader: true}
}

// answerFast is the handler for fasthttp's byte API.
func answerFast(c *fasthttp.RequestCtx) {
	id, found := bytes.CutPrefix(c.Path(), []byte(prefix))
	if !found || len(id) > longest || !c.IsGet() {
		c.SetStatusCode(http.StatusNotFound)
		return
	}
	c.SetContentType(jsonType)
	c.Response.Header.SetBytesV(echoed, c.Request.Header.Peek(echoed))
	_, _ = c.WriteString(before)
	_, _ = c.Write(id)
	_, _ = c.WriteString(patient)
}

// answerFastAny answers a request with any method, whose body fasthttp has read.
func answerFastAny(c *fasthttp.RequestCtx) {
	c.Request.Header.SetMethod(http.MethodGet)
	answerFast(c)
}
