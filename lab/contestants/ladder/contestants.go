package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"github.com/spillway-go/spillway/lab/ladder"
)

// serve serves until ctx ends or the listener fails.
func serve(ctx context.Context, j ladder.Server, l net.Listener) error {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	switch j.Kind {
	case ladder.Raw:
		return spawned(l, floor)
	case ladder.NetHTTP:
		srv := &http.Server{Handler: http.HandlerFunc(answerStrings)}
		return onlyClosed(srv.Serve(l))
	case ladder.NetHTTPPooled:
		return netHTTPByWorkers(l, ladder.MaxConns)
	case ladder.FastHTTP:
		return serveFastHTTP(l, j.Save)
	}
	return (&server{save: j.Save}).listen(l)
}

func onlyClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return closed(err)
}

// floor reads the bytes of one request and writes those of one answer.
func floor(c net.Conn) {
	defer c.Close()
	answer := endHead([]byte("HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Type: "+jsonType+"\r\n"+
		echoed+": 4bf92f3577b34da6\r\n"), len(wireBody), false)
	answer = append(answer, wireBody...)
	in := make([]byte, len(wire))
	for {
		if _, err := io.ReadFull(c, in); err != nil {
			return
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

// netHTTPByWorkers serves connections with net/http on at most n workers, one
// connection at a time each. net/http always starts a goroutine for a connection, so
// the workers bound connections and reuse nothing of net/http.
func netHTTPByWorkers(l net.Listener, n int) error {
	srv := &http.Server{Handler: http.HandlerFunc(answerStrings)}
	return pooled(l, n, func(c net.Conn) { serveOne(srv, l, c) })
}

// serveOne serves one connection that l accepted until it ends.
func serveOne(srv *http.Server, l net.Listener, c net.Conn) {
	_ = srv.Serve(&oneConn{Listener: l, conn: c, ended: make(chan struct{})})
}

// oneConn is a listener that accepts one connection and ends with it.
type oneConn struct {
	net.Listener
	conn  net.Conn
	ended chan struct{}
	once  sync.Once
}

func (o *oneConn) Accept() (net.Conn, error) {
	if c := o.conn; c != nil {
		o.conn = nil
		return closeNotifier{c, o}, nil
	}
	<-o.ended
	return nil, net.ErrClosed
}

// Close leaves the real listener open.
func (o *oneConn) Close() error { return nil }

// closeNotifier reports to its listener that it was closed.
type closeNotifier struct {
	net.Conn
	by *oneConn
}

func (t closeNotifier) Close() error {
	t.by.once.Do(func() { close(t.by.ended) })
	return t.Conn.Close()
}

// fastServer sends only fields that the other servers send too.
func fastServer(save ladder.Rungs) *fasthttp.Server {
	return &fasthttp.Server{Handler: fastHandler(save), Concurrency: ladder.MaxConns, NoDefaultServerHeader: true}
}

// serveFastHTTP serves with fasthttp, without those of its savings that are off.
func serveFastHTTP(l net.Listener, save ladder.Rungs) error {
	srv := fastServer(save)
	if save.Has(ladder.Workers) && save.Has(ladder.Unwatched) {
		return closed(srv.Serve(l))
	}
	serve := func(c net.Conn) {
		if !save.Has(ladder.Unwatched) {
			c = &fastWatched{watch: newWatch(c)}
		}
		_ = srv.ServeConn(c)
	}
	if save.Has(ladder.Workers) {
		return pooled(l, ladder.MaxConns, serve)
	}
	return spawned(l, serve)
}

// fastWatched ends the reading ahead when the answer is written.
type fastWatched struct {
	*watch
	cancel context.CancelFunc
}

func (f *fastWatched) Write(b []byte) (int, error) {
	if f.cancel != nil {
		f.cancel()
		f.cancel = nil
	}
	n, err := f.watch.Write(b)
	f.stop()
	f.idle()
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
		if w, ok := c.Conn().(*fastWatched); ok {
			_, w.cancel = context.WithCancel(context.Background())
			w.start(w.cancel)
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
	switch {
	case !c.IsGet() && !c.IsHead():
		c.SetStatusCode(http.StatusMethodNotAllowed)
		return
	case !found || len(id) > longest:
		c.SetStatusCode(http.StatusNotFound)
		return
	}
	c.SetContentType(jsonType)
	c.Response.Header.SetBytesV(echoed, c.Request.Header.Peek(echoed))
	_, _ = c.WriteString(before)
	_, _ = c.Write(id)
	_, _ = c.WriteString(patient)
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
	c      *fasthttp.RequestCtx
	header http.Header
}

func (w *fastWriter) Header() http.Header               { return w.header }
func (w *fastWriter) WriteHeader(status int)            { w.c.SetStatusCode(status) }
func (w *fastWriter) Write(b []byte) (int, error)       { return w.c.Write(b) }
func (w *fastWriter) WriteString(s string) (int, error) { return w.c.WriteString(s) }
