package route_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/route"
)

// If this instance stops, a refused client must close its connection. Without Connection: close, the
// client once sent its next request to the same instance.
func TestARouteOfAnInstanceThatStopsSendsItsClientsAway(t *testing.T) {
	lim, err := limiter.New(limiter.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m := route.NewMux(route.Config{})
	if err := m.Add(route.New("GET", "/x", func(context.Context, struct{}) (patient, error) { return patient{}, nil }).Limiter(lim)); err != nil {
		t.Fatal(err)
	}
	for _, drained := range []bool{false, true} {
		if drained {
			if err := lim.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for major := 1; major <= 3; major++ { // in HTTP/3 the header would be malformed
			r := httptest.NewRequest(http.MethodGet, "/x", nil)
			r.ProtoMajor = major
			w := httptest.NewRecorder()
			m.ServeHTTP(w, r)
			got := fmt.Sprint(w.Code == http.StatusServiceUnavailable, w.Header().Get("Connection") == "close")
			if want := fmt.Sprint(drained, drained && major < 3); got != want {
				t.Errorf("HTTP/%d, drained %v: refused and closes: %s", major, drained, got)
			}
		}
	}
}
