// Command nethttp shows admission in front of the routes of an http.ServeMux.
//
//	go run ./nethttp
package main

import (
	"fmt"
	"net/http"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/examples/frameworks/internal/serve"
	"github.com/spillway-go/spillway/limiter"
)

func main() { serve.Main(handler) }

// handler wraps the routes and not the mux, so that each can have a priority and no
// route is forgotten by accident in Config.Priority. net/http recovers panics itself:
// the client sees a cut connection, and the slot comes back.
func handler(lim *limiter.Limiter) (http.Handler, error) {
	admit, err := admissionhttp.New(admissionhttp.Config{Limiter: lim})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /readyz", admissionhttp.Ready(lim.Open))
	mux.Handle("GET /orders/{id}", admit(http.HandlerFunc(order)))
	mux.Handle("POST /orders", admissionhttp.WithPriority(spillway.Critical, admit(http.HandlerFunc(place))))
	mux.Handle("GET /broken", admit(http.HandlerFunc(broken)))
	return mux, nil
}

func order(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "order", r.PathValue("id")) }
func place(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }
func broken(http.ResponseWriter, *http.Request)    { panic("no database") }
