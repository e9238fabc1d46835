package app

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// adminConnections is how many connections the admin listener has open.
const adminConnections = 64

// adminAddr returns where the admin listener is to be; "" for nowhere. What it
// tells is for those who run the service, so it must be a loopback address unless
// the command line says otherwise.
func (c *Command) adminAddr() (string, error) {
	if c.Admin.Addr == "" {
		return "", nil
	}
	addr, err := net.ResolveTCPAddr("tcp", c.Admin.Addr)
	if err != nil {
		return "", usagef("admin-addr is not an address: %w; give --admin-addr as 127.0.0.1:6060", err)
	}
	if !addr.IP.IsLoopback() && !c.Admin.Public {
		return "", usagef("admin-addr %s can be reached from other machines, and it asks for no credentials: take 127.0.0.1:%d, or say --admin-public", c.Admin.Addr, addr.Port)
	}
	return addr.String(), nil
}

// listenAdmin opens the admin listener; nil if there is to be none.
func (c *Command) listenAdmin() (net.Listener, error) {
	addr, err := c.adminAddr()
	if addr == "" || err != nil {
		return nil, err
	}
	return listen("admin-addr", addr)
}

// serveAdmin serves what is not for clients. It does not show the command line.
func (s *service) serveAdmin(l net.Listener, stderr io.Writer) (stop func()) {
	mux := http.NewServeMux()
	mux.Handle("/", s.api.Admin())
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	srv := server(mux, time.Minute, s.logger) // profiles that take longer extend it themselves
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(bounded(srv, l, adminConnections))
	}()
	s.admin = l.Addr().String()
	fmt.Fprintf(stderr, "admin on http://%s/: /metrics, /health, /debug/spillway/, /debug/pprof/\n", s.admin)
	return func() { _ = srv.Close(); <-done }
}
