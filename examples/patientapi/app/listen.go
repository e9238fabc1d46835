package app

import (
	"cmp"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// listen opens the listener that the flag asks for.
func listen(flag, addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, usagef("cannot listen on %s: %w; choose another with --%s (port 0 picks a free one)", addr, reason(err), flag)
	}
	return l, nil
}

// reason takes the wrapping off a network error: the address is said already.
func reason(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		return op.Err
	}
	return err
}

const (
	headerTimeout = 5 * time.Second
	maxHeader     = 16 << 10 // bytes; requests here have small ones
	// longestAnswer is how long an answer may take where requests have no timeout.
	longestAnswer = 10 * time.Minute
	// stuck is how long a client of HTTP/2 may take nothing of what is to be written. Over
	// HTTP/1 the deadlines for answers see to that; here many share a connection.
	stuck = 30 * time.Second
)

// server returns an HTTP server with every bound set: a client that sends or reads
// slowly, or nothing at all, holds a connection for a while and no longer.
func server(h http.Handler, timeout time.Duration, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      cmp.Or(timeout, longestAnswer) + time.Minute, // the minute is for the client to read
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeader,
		HTTP2:             &http.HTTP2Config{WriteByteTimeout: stuck},
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
}

// connections is a listener with a bound on the connections that are open. More
// wait in the kernel's queue, which refuses them when it is full.
type connections struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

// bounded lets srv serve l with at most n connections open. Use one for each
// server.
func bounded(srv *http.Server, l net.Listener, n int) net.Listener {
	b := &connections{Listener: l, slots: make(chan struct{}, n), closed: make(chan struct{})}
	srv.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed || state == http.StateHijacked {
			<-b.slots
		}
	}
	return b
}

// Accept implements net.Listener.
func (b *connections) Accept() (net.Conn, error) {
	select {
	case b.slots <- struct{}{}:
	case <-b.closed:
		return nil, net.ErrClosed
	}
	conn, err := b.Listener.Accept()
	if err != nil {
		<-b.slots
	}
	return conn, err
}

// Close implements net.Listener.
func (b *connections) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}
