package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp/client"
)

// A server refuses the first request and gives a time for the retry.
func Example() {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			w.Header().Set("Retry-After", "0")
			http.Error(w, "overloaded", http.StatusServiceUnavailable)
			return
		}
		fmt.Println("priority:", r.Header.Get("Spillway-Priority"))
	}))
	defer server.Close()

	transport, err := client.New(client.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	httpClient := &http.Client{Transport: transport, Timeout: 10 * time.Second}

	ctx := spillway.WithPriority(context.Background(), spillway.High)
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	resp, err := httpClient.Do(req)
	if errors.Is(err, spillway.ErrRejected) {
		fmt.Println("not even sent: the server refuses nearly all")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	fmt.Println(resp.StatusCode, "after", transport.Stats().Retries, "retry")
	// Output:
	// priority: high
	// 200 after 1 retry
}
