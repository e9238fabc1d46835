// Command proxy shows admission in front of httputil.ReverseProxy.
//
//	go run ./nethttp -addr localhost:9000 &
//	go run ./proxy -backend http://localhost:9000
package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/admissionhttp/client"
	"github.com/spillway-go/spillway/examples/frameworks/internal/serve"
	"github.com/spillway-go/spillway/limiter"
)

func main() {
	backend := flag.String("backend", "http://localhost:9000", "where requests go")
	serve.Main(func(lim *limiter.Limiter) (http.Handler, error) { return handler(lim, *backend) })
}

// handler bounds what is under way to the backend. When the backend refuses, that is
// a sign of overload for the limiter here; when it dies within an answer, ReverseProxy
// panics with http.ErrAbortHandler, and the slot comes back.
//
// The transport tells the backend the priority and the deadline that admission found,
// and removes those that a client made up. It never tries again: clients do, and two
// that try three times send nine requests.
func handler(lim *limiter.Limiter, backend string) (http.Handler, error) {
	target, err := url.Parse(backend)
	if err != nil {
		return nil, fmt.Errorf("backend: %w", err)
	}
	admit, err := admissionhttp.New(admissionhttp.Config{Limiter: lim, Kind: kind})
	if err != nil {
		return nil, err
	}
	transport, err := client.New(client.Config{Attempts: 1})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /readyz", admissionhttp.Ready(lim.Open))
	mux.Handle("/", admit(&httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.SetXForwarded()
		},
		ErrorHandler: unreachable,
	}))
	return mux, nil
}

// kind names what a request does by its method and the first part of its path: "GET orders". A proxy has no
// routes, and what takes long on the backend should be told apart from what does not. Where clients make up
// paths, name those that the backend has.
func kind(r *http.Request) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return r.Method + " " + first
}

// unreachable answers what the backend did not. Only a *spillway.Rejection is a refusal, here of the
// transport, because the backend refuses most of what it gets: the client may come back later. A call that
// its own deadline ended has begun, and was not refused.
func unreachable(w http.ResponseWriter, r *http.Request, err error) {
	if refused, ok := errors.AsType[*spillway.Rejection](err); ok {
		admissionhttp.Refuse(w, r, refused)
		return
	}
	status := http.StatusBadGateway
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() { // as context.DeadlineExceeded is
		status = http.StatusGatewayTimeout
	}
	w.WriteHeader(status)
}
