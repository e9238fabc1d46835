package admissionhttp_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/limiter"
)

// protected is a service that answers within two seconds or refuses at once.
func protected(mux http.Handler) (*http.Server, error) {
	mode, err := admissionhttp.ModeFromEnv() // SPILLWAY_MODE: off, dryrun or enforce
	if err != nil {
		return nil, err
	}
	lim, err := limiter.New(limiter.Config{Mode: mode})
	if err != nil {
		return nil, err
	}
	admit, err := admissionhttp.New(admissionhttp.Config{
		Limiter:   lim,
		Deadlines: map[spillway.Priority]time.Duration{spillway.Normal: 2 * time.Second},
	})
	if err != nil {
		return nil, err
	}
	return &http.Server{Addr: ":8080", Handler: admit(mux), ReadHeaderTimeout: 5 * time.Second}, nil
}

// A service with a deadline for its requests, and no number that has to be found.
func ExampleNew_deadlines() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders", hello)
	server, err := protected(mux)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer(server.Handler, http.MethodGet, "/orders"))
	// Output: 200
}
