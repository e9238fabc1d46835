package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"github.com/spillway-go/spillway/lab/ladder"
)

// serve serves until the listener is closed.
func serve(s ladder.Server, l net.Listener) error {
	switch s.Kind {
	case ladder.Raw:
		return byConnection(l, 0, floor)
	case ladder.NetHTTP:
		handler := http.HandlerFunc(answerStrings)
		if s.Asks != "" {
			handler = answerAny
		}
		return (&http.Server{Handler: handler}).Serve(l)
	case ladder.NetHTTPReads:
		return (&http.Server{Handler: http.HandlerFunc(readAgain)}).Serve(l)
	case ladder.NetHTTPPooled:
		return byConnection(l, ladder.Workers, netHTTP)
	case ladder.FastHTTP:
		return fastHTTP(l, s)
	}
	return byConnection(l, s.Save, func(c net.Conn) { serveSmall(s.Save, c) })
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

// floor reads the bytes of one request and writes those of one answer.
func floor(c net.Conn) {
	defer c.Close()
	answer := append(endHead([]byte("HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Type: "+jsonType+"\r\n"+
		echoed+": 4bf92f3577b34da6\r\n"), len(wireBody), false), wireBody...)
	for in := make([]byte, len(wire)); ; {
		if _, err := io.ReadFull(c, in); err != nil {
			return
		}
		_, _ = c.Write(answer) // reading again finds out that the client has left
	}
}

// netHTTP serves one connection with net/http until it ends. net/http starts a goroutine
// for it all the same.
func netHTTP(c net.Conn) {
	ended := make(chan struct{})
	srv := &http.Server{Handler: http.HandlerFunc(answerStrings), ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			close(ended)
		}
	}}
	one := make(handed, 1)
	one <- c
	close(one)
	_ = srv.Serve(one)
	<-ended
}

// handed is a listener of connections that others have accepted.
type handed chan net.Conn

func (h handed) Accept() (net.Conn, error) {
	if c, ok := <-h; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (handed) Close() error   { return nil }
func (handed) Addr() net.Addr { return &net.TCPAddr{} }

// fastHTTP serves with fasthttp, without those of its savings that are off. It sends only
// fields that the other servers send too.
func fastHTTP(l net.Listener, s ladder.Server) error {
	save, handler := s.Save, fastHandler(s.Save)
	if s.Asks != "" {
		handler = answerFastAny
	}
	srv := &fasthttp.Server{Handler: handler, NoDefaultServerHeader: true}
	if save.Has(ladder.Workers | ladder.Unwatched) {
		return srv.Serve(l)
	}
	return byConnection(l, save, func(c net.Conn) {
		if !save.Has(ladder.Unwatched) {
			c = fastWatched{newWatch(c)}
		}
		_ = srv.ServeConn(c)
	})
}

// fastWatched ends the reading ahead when the answer is written.
type fastWatched struct{ *watch }

func (f fastWatched) Write(b []byte) (int, error) {
	if f.gone != nil { // there was a request
		f.gone()
	}
	n, err := f.watch.Write(b)
	f.stop()
	return n, err
}

// escaped makes values that are allocated instead of reused escape to the heap.
var escaped atomic.Pointer[fasthttp.RequestCtx]

func fastHandler(save ladder.Rungs) fasthttp.RequestHandler {
	handle := answerFast
	if !save.Has(ladder.Bytes) {
		handle = answerFastStrings
	}
	return func(c *fasthttp.RequestCtx) {
		if w, ok := c.Conn().(fastWatched); ok {
			_, cancel := context.WithCancel(context.Background())
			w.start(cancel)
		}
		if save.Has(ladder.State) {
			handle(c)
			return
		}
		escaped.Store(new(fasthttp.RequestCtx))
		c.Response = fasthttp.Response{}
		handle(c)
		c.Request = fasthttp.Request{}
	}
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

// answerFastStrings calls the handler with the request that net/http would have made.
func answerFastStrings(c *fasthttp.RequestCtx) {
	u, err := url.ParseRequestURI(string(c.RequestURI()))
	if err != nil {
		c.SetStatusCode(http.StatusBadRequest)
		return
	}
	h := make(http.Header, c.Request.Header.Len())
	for name, value := range c.Request.Header.All() {
		h[string(name)] = append(h[string(name)], string(value))
	}
	w := &fastWriter{c, make(http.Header)}
	answerStrings(w, &http.Request{Method: string(c.Method()), RequestURI: string(c.RequestURI()), URL: u, Header: h, Host: string(c.Host()), Body: http.NoBody})
	for name, values := range w.header {
		for _, v := range values {
			c.Response.Header.Set(name, v)
		}
	}
}

// fastWriter is an http.ResponseWriter over fasthttp.
type fastWriter struct {
	*fasthttp.RequestCtx
	header http.Header
}

func (w *fastWriter) Header() http.Header    { return w.header }
func (w *fastWriter) WriteHeader(status int) { w.SetStatusCode(status) }
