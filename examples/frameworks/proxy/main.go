// Command proxy shows admission in front of httputil.ReverseProxy.
//
//	go run ./nethttp -addr localhost:9000 &
//	go run ./proxy -backend http://localhost:9000
package main

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"

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
	admit, err := admissionhttp.New(admissionhttp.Config{Limiter: lim})
	if err != nil {
		return nil, err
	}
	transport, err := client.New(client.Config{Attempts: 1})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /readyz", admissionhttp.Ready(lim))
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

// unreachable answers what the backend did not: refused by the transport, because the
// backend refuses most of what it gets, or failed.
func unreachable(w http.ResponseWriter, r *http.Request, err error) {
	if !admissionhttp.Refuse(w, r, err) {
		w.WriteHeader(http.StatusBadGateway)
	}
}
