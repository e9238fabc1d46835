package client

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
)

// ask sends a request every 10 ms to a server that accepts some of them, and returns the share of
// sent requests.
func (tr *throttle) ask(c *counter, random *rand.Rand, start time.Time, from, to time.Duration, accept func(n int) bool) (sent float64) {
	n, asked := 0, 0
	for at := from; at < to; at += 10 * time.Millisecond {
		asked++
		if !tr.refuses(c, start.Add(at), random.Float64()) {
			n++
			tr.answered(c, start.Add(at), accept(n))
		}
	}
	return float64(n) / float64(asked)
}

func TestAClientThrottlesItselfAsTheServerSheds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	tr := newThrottle(2, 10)
	c := tr.counter(&url.URL{Host: "a"}, spillway.Normal)
	minute := time.Minute
	all := func(int) bool { return true }
	none := func(int) bool { return false }
	if sent := tr.ask(c, random, tr.base, 0, minute, all); sent != 1 {
		t.Errorf("%.2f sent to a server that accepts all", sent)
	}
	half := func(n int) bool { return n%2 == 0 }
	if sent := tr.ask(c, random, tr.base, minute, 2*minute, half); sent < 0.9 {
		t.Errorf("%.2f sent to a server that accepts half", sent)
	}
	tr.ask(c, random, tr.base, 2*minute, 3*minute, none)
	if sent := tr.ask(c, random, tr.base, 3*minute, 4*minute, none); sent < 0.03 || sent > 0.07 {
		t.Errorf("%.4f sent to a server that accepts none", sent)
	}
	back := 4*minute + 30*time.Second
	tr.ask(c, random, tr.base, 4*minute, back, all)
	if sent := tr.ask(c, random, tr.base, back, back+minute, all); sent != 1 {
		t.Errorf("%.2f sent to a server that accepts all again", sent)
	}
}

func TestAFewRefusalsThrottleNothing(t *testing.T) {
	tr := newThrottle(2, 10)
	c := tr.counter(&url.URL{Host: "a"}, spillway.Normal)
	for n := range 100 {
		now := tr.base.Add(time.Duration(n) * 10 * time.Second)
		if tr.refuses(c, now, 0) {
			t.Fatal("a request every ten seconds is throttled")
		}
		tr.answered(c, now, false)
	}
}

func TestPrioritiesAndHostsAreThrottledApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := roundTripper(func(r *http.Request) (*http.Response, error) {
			status := http.StatusOK
			if r.Header.Get(priorityHeader) == "low" {
				status = http.StatusServiceUnavailable
			}
			return &http.Response{StatusCode: status, Body: http.NoBody}, nil
		})
		tr := newTransport(t, Config{Base: f, Attempts: 1})
		low := spillway.WithPriority(t.Context(), spillway.Low)
		throttled := 0
		for range 100 {
			if _, err := tr.RoundTrip(request(t, low, "GET", "")); err != nil {
				throttled++
			}
			if _, err := tr.RoundTrip(request(t, t.Context(), "GET", "")); err != nil {
				t.Fatal("normal requests are accepted, and throttled")
			}
		}
		if throttled < 50 || uint64(throttled) != tr.Stats().Throttled {
			t.Errorf("%d of 100 low requests were throttled: %+v", throttled, tr.Stats())
		}
		other := request(t, low, "GET", "")
		other.URL.Host = "other.example"
		if _, err := tr.RoundTrip(other); err != nil {
			t.Error("another host is throttled too")
		}
	})
}

func TestMemoryForHostsIsBounded(t *testing.T) {
	tr := newThrottle(2, 10)
	kept := tr.counter(&url.URL{Host: "kept"}, spillway.Normal)
	for n := range 1000 {
		tr.counter(&url.URL{Host: strings.Repeat("x", n) + fmt.Sprint(n)}, spillway.Priority(n))
		if tr.counter(&url.URL{Host: "kept"}, spillway.Normal) != kept {
			t.Fatal("a host that is asked again and again was forgotten")
		}
	}
	if len(tr.hosts) != 10 || tr.recent.Len() != 10 {
		t.Errorf("%d hosts, %d in the list", len(tr.hosts), tr.recent.Len())
	}
	for key := range tr.hosts {
		if len(key.host) > longestHost {
			t.Errorf("a name of %d bytes is kept", len(key.host))
		}
	}
	tr.counter(nil, spillway.Normal)
}

func TestWithInfiniteToleranceNothingIsThrottled(t *testing.T) {
	tr := newThrottle(math.Inf(1), 10)
	c := tr.counter(&url.URL{Host: "a"}, spillway.Normal)
	for n := range 1000 {
		if tr.refuses(c, tr.base, 0) {
			t.Fatal("throttled")
		}
		tr.answered(c, tr.base, n == 500)
	}
}
