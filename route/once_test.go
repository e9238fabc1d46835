package route

import (
	"net/http"
	"strings"
	"testing"
)

// A server recovers a panic of the first request. It once served all later requests without the
// middleware that was not built yet: here, without authentication.
func TestNothingIsServedBehindHalfOfTheMiddleware(t *testing.T) {
	m := NewMux(Config{})
	m.Use(
		func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.Problem(w, r, &Problem{Status: 401}) })
		},
		func(http.Handler) http.Handler { panic("no configuration") },
	)
	check(t, m.Add(New("GET", "/a", noContent)))
	for n, want := range []string{"no configuration", "nothing is served", "nothing is served"} {
		func() {
			defer func() {
				if v, _ := recover().(string); !strings.Contains(v, want) {
					t.Errorf("request %d: panic %q, want %q", n, v, want)
				}
			}()
			w := do(m, "GET", "/a", "", "")
			t.Errorf("request %d was answered %d", n, w.Code)
		}()
	}
}
