package main

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/examples/frameworks/internal/exercise"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

func init() {
	gin.SetMode(gin.TestMode)
	gin.DefaultErrorWriter = io.Discard // stacks of the panics
}

func TestShedsAndRecovers(t *testing.T) { exercise.HTTP(t, handler, http.StatusInternalServerError) }

// Admission sees through the adapter what a handler answers.
func TestStatusAndStreamsAreSeen(t *testing.T) {
	lim, err := limiter.New(limiter.Config{Law: limit.NewFixed(1), QueueSize: -1})
	if err != nil {
		t.Fatal(err)
	}
	var status int
	var pattern string
	admit, err := admissionhttp.New(admissionhttp.Config{
		Limiter: lim,
		Outcome: func(s int, _ http.Header, _ error) error { status = s; return errors.New("no sample") },
		Kind:    func(r *http.Request) string { pattern = r.Pattern; return "" },
	})
	if err != nil {
		t.Fatal(err)
	}
	var long int
	engine := gin.New()
	engine.Use(middleware(admit))
	engine.GET("/status", func(c *gin.Context) { c.Status(http.StatusTeapot) })
	engine.GET("/text", func(c *gin.Context) { c.String(http.StatusAccepted, "text") })
	engine.GET("/stream", func(c *gin.Context) {
		c.SSEvent("tick", 1)
		c.Writer.Flush()
		long = lim.Stats().LongInFlight
	})
	server := httptest.NewServer(engine)
	defer server.Close()
	for path, want := range map[string]int{"/status": http.StatusTeapot, "/text": http.StatusAccepted} {
		resp, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if pattern != path {
			t.Errorf("%s: for admission the route is %q", path, pattern)
		}
		if resp.StatusCode != want || status != want {
			t.Errorf("%s: the client got %d, admission saw %d, want %d", path, resp.StatusCode, status, want)
		}
	}
	resp, err := http.Get(server.URL + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || line != "event:tick\n" {
		t.Errorf("the stream began with %q: %v", line, err)
	}
	_, _ = io.Copy(io.Discard, resp.Body) // the handler has returned
	if long != 1 {
		t.Errorf("%d streams were counted apart, want 1", long)
	}
}
