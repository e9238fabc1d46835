package route

import (
	"net/http"
	"testing"
)

// What the handler is given has to be allocated: of a body one copy, whose parts
// its strings are, and its slices. ServeMux needs one for a path value.
func TestAllocationsPerRequest(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates, and makes pools drop objects")
	}
	post, get := typed(typedPost().Untimed()), typed(typedGet().Untimed())
	timed := typed(typedGet())
	for _, c := range []struct {
		name    string
		handler http.Handler
		request *harness
		most    float64
	}{
		{"get", get, newHarness("GET", "/patients/P000042", "", ""), 1},
		{"get with Server-Timing", timed, newHarness("GET", "/patients/P000042", "", ""), 1},
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
