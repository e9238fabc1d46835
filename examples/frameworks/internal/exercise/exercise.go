// Package exercise is the test that every HTTP example passes.
package exercise

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/examples/frameworks/internal/serve"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// Cut is the status of a request whose connection was cut.
const Cut = 0

// broken is how many requests panic: more than there are slots.
const broken = 20

// HTTP serves what build makes behind one slot without a queue, over loopback. It
// checks that a request is answered, that panics are answered with the status
// recovered and cost no slot, that a request is shed as it should be, that probes are
// not, and that a stop finishes all. Its answers must be short: they are then sent when
// the handler has ended, and the slot is free.
func HTTP(t *testing.T, build serve.Build, recovered int) {
	t.Helper()
	lim, err := limiter.New(limiter.Config{Name: "http", Law: limit.NewFixed(1), QueueSize: -1})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve.Run(ctx, l, lim, build) }()
	url := "http://" + l.Addr().String()

	want(t, "before", get(t, url+"/orders/7"), http.StatusOK)
	for range broken {
		want(t, "panic", get(t, url+"/broken"), recovered)
	}
	if n := lim.Stats().InFlight; n != 0 {
		t.Fatalf("%d slots are in use after the panics", n)
	}
	want(t, "after the panics", get(t, url+"/orders/7"), http.StatusOK)

	other, err := lim.Acquire(ctx) // other work takes the slot
	if err != nil {
		t.Fatal(err)
	}
	Shed(t, get(t, url+"/orders/7"))
	want(t, "probe", get(t, url+"/readyz"), http.StatusOK)
	other.Release()
	want(t, "after the shed one", get(t, url+"/orders/7"), http.StatusOK)

	stop()
	if err := <-ended; err != nil {
		t.Error("stop:", err)
	}
	s := lim.Stats()
	if s.Offered != s.Admitted+s.Rejected+s.Cancelled || s.Admitted != s.Completed || s.Rejected != 1 || s.InFlight != 0 {
		t.Errorf("the counts do not fit: %+v", s)
	}
}

// Answer is what a client gets.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

func get(t *testing.T, url string) Answer {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		return Answer{Status: Cut}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return Answer{Status: Cut}
	}
	return Answer{resp.StatusCode, resp.Header, body}
}

func want(t *testing.T, what string, got Answer, status int) {
	t.Helper()
	if got.Status != status {
		t.Fatalf("%s: status %d, want %d: %s", what, got.Status, status, got.Body)
	}
}

// Shed checks the answer to a request that was refused because the queue was full.
func Shed(t *testing.T, a Answer) {
	t.Helper()
	want(t, "shed", a, http.StatusServiceUnavailable)
	if got := a.Header.Get(admissionhttp.HeaderReason); got != "queue_full" {
		t.Errorf("the reason is %q", got)
	}
	if seconds, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || seconds < 1 {
		t.Errorf("Retry-After is %q: %v", a.Header.Get("Retry-After"), err)
	}
	if got := a.Header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("the answer is %s", got)
	}
	var problem struct {
		Type, Title string
		Status      int
	}
	if err := json.Unmarshal(a.Body, &problem); err != nil || problem.Status != a.Status || problem.Type == "" || problem.Title == "" {
		t.Errorf("the problem is %s: %v", a.Body, err)
	}
}
