package route

import (
	"context"
	"net/http"
	"testing"
)

// Clients that prefer leniency share a route with those that do not, and no request
// leaves its leniency to the next.
func TestUnknownIsAllowedInTheRequestsThatAskForIt(t *testing.T) {
	type in struct {
		Page string `query:"page"`
		Name string `json:"name" form:"name" xml:"name"`
	}
	s := serving(t, func(f func(context.Context, in) (Empty, error)) *Route {
		return New("POST", "/", f).AllowUnknownIf(func(r *http.Request) bool { return r.Header.Get("Prefer") == "handling=lenient" })
	}, Config{})
	for _, c := range []struct{ path, media, body string }{
		{"/?page=2&odd=1", "application/json", `{"name":"a"}`},
		{"/?page=2", "application/json", `{"name":"a","odd":1}`},
		{"/?page=2", "application/x-www-form-urlencoded", "name=a&odd=1"},
		{"/?page=2", "application/xml", "<in><name>a</name><odd>1</odd></in>"},
	} {
		for range 2 {
			if w := do(s, "POST", c.path, c.media, c.body, "Prefer", "handling=lenient"); w.Code != 204 || s.got != (in{"2", "a"}) {
				t.Errorf("%s %s: %d %s, bound %+v", c.path, c.body, w.Code, w.Body, s.got)
			}
			if w := do(s, "POST", c.path, c.media, c.body); w.Code != 400 {
				t.Errorf("%s %s: %d without the preference", c.path, c.body, w.Code)
			}
		}
	}
}
