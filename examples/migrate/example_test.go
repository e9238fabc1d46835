package migrate_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/spillway-go/spillway/admissionhttp"
)

// What the examples work with.

func send(_ context.Context, to string) error {
	fmt.Println("sent to", to)
	return nil
}

func lookUp(_ context.Context, id int) (string, error) { return fmt.Sprint("patient ", id), nil }

func query(context.Context) error { return nil }

func listOrders(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "no orders") }

func placeOrder(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }

// answer asks a handler and returns its status.
func answer(h http.Handler, method, path string) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w.Code
}

func newServer() *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders", listOrders)
	mux.HandleFunc("POST /orders", placeOrder)
	server := &http.Server{
		Addr:              ":8080",
		Handler:           admissionhttp.Protect(mux),
		ReadHeaderTimeout: 5 * time.Second,
	}
	return server
}

// A service of net/http behind a limiter that finds its own limit.
func Example() {
	fmt.Println(answer(newServer().Handler, http.MethodPost, "/orders"))
	// Output: 201
}
