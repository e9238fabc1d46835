package admissionhttp

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// A request may wait for a processor before the middleware sees it. The time in the header counts
// from the sending of the request, so the wait is subtracted. At least leastLeft remains, and the
// limiter decides.
func TestTheWaitInFrontCountsForTheDeadline(t *testing.T) {
	g := &guard{header: http.CanonicalHeaderKey(HeaderDeadline)}
	for _, c := range []struct {
		header      string
		delay, want time.Duration
	}{
		{"500", 0, 500 * time.Millisecond},
		{"500", 120 * time.Millisecond, 380 * time.Millisecond},
		{"500", time.Minute, leastLeft},
		{"0", time.Minute, 0},
		{"", time.Minute, -1},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if c.header != "" {
			r.Header.Set(HeaderDeadline, c.header)
		}
		if said, usual := g.deadlines(t.Context(), r, c.delay); said != c.want || usual != -1 {
			t.Errorf("%q after %v: %v left, %v usual", c.header, c.delay, said, usual)
		}
	}
}
