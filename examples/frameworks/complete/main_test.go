package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/frameworks/internal/exercise"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

func TestAWholeLife(t *testing.T) {
	t.Setenv("SPILLWAY_MODE", "")
	public, admin := listen(t), listen(t)
	url, inside := "http://"+public.Addr().String(), "http://"+admin.Addr().String()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, limiter.Config{Name: "http", Law: limit.NewFixed(1), QueueSize: -1, MaxAside: -1}, public, admin, 0)
	}()

	status(t, http.MethodGet, url+"/readyz", http.StatusOK)
	status(t, http.MethodGet, url+"/orders/7", http.StatusOK)
	status(t, http.MethodGet, url+"/export", http.StatusOK)

	// An order whose body does not end holds the slot, since MaxAside is negative.
	body, more := io.Pipe()
	placed := make(chan int, 1)
	go func() {
		resp, err := http.Post(url+"/orders", "text/plain", body)
		if err != nil {
			placed <- 0
			return
		}
		_ = resp.Body.Close()
		placed <- resp.StatusCode
	}()
	const active = `spillway_active_requests{key="",limiter="http"} 1`
	await.True(t, "the order is admitted", func() bool {
		return strings.Contains(string(ask(t, http.MethodGet, inside+"/metrics").Body), active)
	})
	exercise.Shed(t, ask(t, http.MethodGet, url+"/orders/7"))
	status(t, http.MethodGet, inside+"/debug/spillway/", http.StatusOK)

	status(t, http.MethodPut, inside+"/mode/dryrun", http.StatusNoContent)
	status(t, http.MethodGet, url+"/orders/7", http.StatusOK)
	status(t, http.MethodPut, inside+"/mode/nonsense", http.StatusBadRequest)
	status(t, http.MethodPut, inside+"/mode/enforce", http.StatusNoContent)
	exercise.Shed(t, ask(t, http.MethodGet, url+"/orders/7"))

	stop()
	await.True(t, "it is not ready", func() bool {
		return ask(t, http.MethodGet, url+"/readyz").Status == http.StatusServiceUnavailable
	})
	status(t, http.MethodGet, url+"/orders/7", http.StatusServiceUnavailable) // the listener still answers
	if err := more.Close(); err != nil {
		t.Error(err)
	}
	if got := <-placed; got != http.StatusCreated {
		t.Errorf("the order that was admitted got %d", got)
	}
	if err := <-ended; err != nil {
		t.Error("stop:", err)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func status(t *testing.T, method, url string, want int) {
	t.Helper()
	if got := ask(t, method, url); got.Status != want {
		t.Fatalf("%s %s: %d, want %d: %s", method, url, got.Status, want, got.Body)
	}
}

func ask(t *testing.T, method, url string) exercise.Answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return exercise.Answer{Status: resp.StatusCode, Header: resp.Header, Body: body}
}
