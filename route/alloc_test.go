package route

import (
	"net/http"
	"testing"

	"github.com/spillway-go/spillway"
)

// The handler's values must be allocated: one copy of the body, whose parts are the strings, and
// the slices. ServeMux needs one allocation for a path value.
func TestAllocationsPerRequest(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates, and makes pools drop objects")
	}
	post, get := typed(typedPost()), typed(typedGet())
	timed := served(Config{}, typedGet())
	behind := NewMux(Config{Untimed: true})
	behind.Use(func(next http.Handler) http.Handler { return http.HandlerFunc(next.ServeHTTP) })
	group := behind.Group("/in")
	group.Use(func(next http.Handler) http.Handler { return http.HandlerFunc(next.ServeHTTP) })
	check(t, group.Add(typedGet(), New("GET", "/urgent/{id}", getByType).Priority(spillway.High),
		New("GET", "/heavy/{id}", getByType).Priority(spillway.High).Cost(2)))
	for _, c := range []struct {
		name    string
		handler http.Handler
		request *harness
		most    float64
	}{
		{"get", get, newHarness("GET", "/patients/P000042", "", ""), 1},
		{"get with Server-Timing", timed, newHarness("GET", "/patients/P000042", "", ""), 1},
		{"get behind middleware", behind, newHarness("GET", "/in/patients/P000042", "", ""), 1},
		{"get with a priority", behind, newHarness("GET", "/in/urgent/P000042", "", ""), 3},
		{"get with a priority and a cost", behind, newHarness("GET", "/in/heavy/P000042", "", ""), 3},
		{"json", post, newHarness("POST", "/patients", "application/json", benchJSON), 2},
		{"large json", post, newHarness("POST", "/patients", "application/json", large()), 2},
		{"form", post, newHarness("POST", "/patients", "application/x-www-form-urlencoded", benchForm), 2},
	} {
		got := testing.AllocsPerRun(200, func() { c.request.run(c.handler) })
		if c.request.status != 200 || got > c.most {
			t.Errorf("%s: status %d, %v allocations, want at most %v", c.name, c.request.status, got, c.most)
		}
	}
}
