package admissionhttp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// Any client can claim to want a stream. Until the answer is a stream, the usual deadline applies.
// Such a request once had no deadline, and could hold its slot while the handler worked.
func TestAClaimOfAStreamLiftsNoDeadline(t *testing.T) {
	const usual = 5 * time.Second
	idle := func(http.ResponseWriter, *http.Request) {}
	for name, c := range map[string]struct {
		headers []string
		handler func(http.ResponseWriter, *http.Request)
		mode    limiter.Mode
		want    time.Duration // until the context ends
		outcome limit.Outcome
	}{
		"an ordinary answer":       {[]string{"Accept", "text/event-stream"}, idle, 0, usual, limit.Deadline},
		"an ordinary flush":        {[]string{"Accept", "text/event-stream"}, flushText, 0, usual, limit.Deadline},
		"a forged upgrade":         {[]string{"Upgrade", "websocket"}, idle, 0, usual, limit.Deadline},
		"a stream":                 {[]string{"Accept", "text/event-stream"}, events, 0, time.Minute, limit.Canceled},
		"a stream that ends early": {[]string{"Accept", "text/event-stream", "Spillway-Deadline", "20S"}, events, 0, 20 * time.Second, limit.Deadline},
		"a claim that ends early":  {[]string{"Accept", "text/event-stream", "Spillway-Deadline", "2S"}, idle, 0, 2 * time.Second, limit.Deadline},
		"a claim behind a lot":     {[]string{"Accept", strings.Repeat(",", 4000), "Accept", "a/b, c/d;q=0.1" + strings.Repeat(",", 100), "Accept", "text/event-stream"}, events, 0, usual, limit.Deadline},
		"a stream not announced":   {nil, events, 0, usual, limit.Deadline},
		"a dry run":                {[]string{"Accept", "text/event-stream"}, idle, limiter.DryRun, time.Minute, limit.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var outcome limit.Outcome
				lim := must(limiter.New(limiter.Config{Mode: c.mode, Observer: &limiter.Observer{Ended: func(e limiter.End) { outcome = e.Outcome }}}))
				h := middleware(t, admissionhttp.Config{
					Limiter: lim, Deadlines: map[spillway.Priority]time.Duration{spillway.Normal: usual},
				})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					c.handler(w, r)
					<-r.Context().Done()
				}))
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Minute, cancel)
				begin := time.Now()
				ask(h, ctx, c.headers...)
				if d := time.Since(begin); d != c.want || outcome != c.outcome {
					t.Errorf("ended after %v as %v, want %v and %v", d, outcome, c.want, c.outcome)
				}
				atRest(t, lim, 1)
			})
		})
	}
}

// A function of Config that panicked after the admission once cost a slot.
func TestAPanicOfTheConfigurationCostsNoSlot(t *testing.T) {
	for name, cfg := range map[string]admissionhttp.Config{
		"Long":     {Long: func(*http.Request) bool { panic("a bug") }},
		"Cost":     {Cost: func(*http.Request) int { panic("a bug") }},
		"Priority": {Priority: func(*http.Request) spillway.Priority { panic("a bug") }},
		"Trusted":  {Trusted: func(*http.Request) bool { panic("a bug") }},
		"Caller":   {FairShares: true, Caller: func(*http.Request) string { panic("a bug") }},
		"Outcome":  {Outcome: func(int, http.Header, error) error { panic("a bug") }},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Limiter = one(t)
			h := middleware(t, cfg)(ok)
			func() {
				defer func() {
					if recover() == nil {
						t.Error("the panic was swallowed")
					}
				}()
				ask(h, t.Context(), "Spillway-Priority", "high")
			}()
			if s := cfg.Limiter.Stats(); s.InFlight != 0 || s.Admitted != s.Completed {
				t.Errorf("%d in flight", s.InFlight)
			}
		})
	}
}

// A subscriber with IPv6 has 2^64 addresses, and once had a share of the queue for each.
func TestACallerOfIPv6IsItsNetwork(t *testing.T) {
	for name, c := range map[string]struct {
		first, second string
		same          bool
	}{
		"one network":    {"[2001:db8::1]:1", "[2001:db8::ffff:1]:2", true},
		"two networks":   {"[2001:db8::1]:1", "[2001:db8:0:1::1]:1", false},
		"IPv4":           {"192.0.2.1:1", "192.0.2.2:1", false},
		"one of IPv4":    {"192.0.2.1:1", "192.0.2.1:2", true},
		"IPv4 in IPv6":   {"[::ffff:192.0.2.1]:1", "[::ffff:192.0.2.2]:1", false},
		"with a zone":    {"[fe80::1%eth0]:1", "[fe80::2%eth0]:1", true},
		"a Unix socket":  {"@", "@", true},
		"not an address": {"[a:b]:1", "[a:c]:1", false},
	} {
		t.Run(name, func(t *testing.T) {
			from := func(h http.Handler, address string) int {
				w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
				r.RemoteAddr = address
				h.ServeHTTP(w, r)
				return w.Code
			}
			for _, fair := range []bool{true, false} {
				lim := must(limiter.New(limiter.Config{Law: limit.NewFixed(1), QueueSize: 10, MaxWait: time.Millisecond}))
				protect := middleware(t, admissionhttp.Config{Limiter: lim, FairShares: fair})
				from(protect(ok), "198.51.100.1:1") // another caller, active
				status := 0
				from(protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { status = from(protect(ok), c.second) })), c.first)
				if (status == http.StatusTooManyRequests) != (fair && c.same) || status < 400 {
					t.Errorf("fair shares %v: status %d", fair, status)
				}
			}
		})
	}
}
