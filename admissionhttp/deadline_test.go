package admissionhttp

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/priority"
)

// With an entry for Normal alone, requests of other priorities had no deadline.
func TestAPriorityWithoutAnEntryHasTheNearestDeadline(t *testing.T) {
	const low, normal, high, critical = spillway.Low, spillway.Normal, spillway.High, spillway.Critical
	type entries = map[spillway.Priority]time.Duration
	for name, c := range map[string]struct {
		entries entries
		want    entries
	}{
		"none":              {nil, entries{}},
		"one for all":       {entries{normal: 2}, entries{low: 2, normal: 2, high: 2, critical: 2}},
		"the nearest":       {entries{low: 9, critical: 1}, entries{low: 9, normal: 9, high: 1, critical: 1}},
		"the shorter":       {entries{low: 9, high: 1}, entries{low: 9, normal: 1, high: 1, critical: 1}},
		"below the shorter": {entries{normal: 1, critical: 9}, entries{low: 1, normal: 1, high: 1, critical: 9}},
		"zero is none":      {entries{normal: 2, critical: 0}, entries{low: 2, normal: 2, high: 2}},
		"none for all":      {entries{normal: 0}, entries{}},
	} {
		for p := low; p <= critical; p++ {
			if got := usualOf(c.entries)[priority.Level(p)]; got != c.want[p] {
				t.Errorf("%s: %v has %v, want %v", name, p, got, c.want[p])
			}
		}
	}
}

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
