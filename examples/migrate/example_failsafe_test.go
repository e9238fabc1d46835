package migrate_test

import (
	"fmt"
	"net/http"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/limiter"
)

// An adaptive limiter in front of a handler.
func Example_failsafe() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders", listOrders)

	lim, err := limiter.New(limiter.Config{Name: "http"})
	if err != nil {
		fmt.Println(err)
		return
	}
	admit, err := admissionhttp.New(admissionhttp.Config{Limiter: lim})
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := admit(mux)

	fmt.Println(answer(handler, http.MethodGet, "/orders"), lim.Stats().Completed)
	// Output: 200 1
}
