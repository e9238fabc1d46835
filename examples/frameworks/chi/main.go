// Command chi shows admission in front of the routes of a chi router.
//
//	go run ./chi
package main

import (
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/examples/frameworks/internal/serve"
	"github.com/spillway-go/spillway/limiter"
)

func main() { serve.Main(handler) }

// handler uses the middleware as it is: chi's is that of net/http.
func handler(lim *limiter.Limiter) (http.Handler, error) {
	admit, err := admissionhttp.New(admissionhttp.Config{Limiter: lim})
	if err != nil {
		return nil, err
	}
	r := chi.NewRouter()
	r.Use(middleware.RequestID, middleware.Recoverer)
	r.Method(http.MethodGet, "/readyz", admissionhttp.Ready(lim.Open))
	r.Group(func(r chi.Router) {
		r.Use(admit)
		r.Get("/orders/{id}", order)
		r.Get("/broken", broken)
	})
	r.With(critical, admit).Post("/orders", place)
	return r, nil
}

// critical comes before admission, which reads the priority.
func critical(next http.Handler) http.Handler {
	return admissionhttp.WithPriority(spillway.Critical, next)
}

func order(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "order", chi.URLParam(r, "id")) }
func place(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }
func broken(http.ResponseWriter, *http.Request)    { panic("no database") }
