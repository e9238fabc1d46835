package admissionhttp_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/limiter"
)

// With any headers, a request is served or refused, and leaves no slot or queue place taken. An
// untrusted request has no priority, and no deadline becomes later.
func FuzzHeaders(f *testing.F) {
	for _, seed := range [][4]string{
		{"critical", "1500", "text/event-stream", ""}, {"low", "0", "*/*", "websocket"},
		{"127", "99999999H", ";,;", "h2c"}, {"\x00", "-1", "\xff", "\r\n"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3], false)
		f.Add(seed[0], seed[1], seed[2], seed[3], true)
	}
	const normal = time.Minute
	f.Fuzz(func(t *testing.T, priority, deadline, accept, upgrade string, trusted bool) {
		lim := must(limiter.New(limiter.Config{}))
		admit := middleware(t, admissionhttp.Config{
			Limiter: lim, Trusted: func(*http.Request) bool { return trusted }, FairShares: true,
			Deadlines: map[spillway.Priority]time.Duration{spillway.Normal: normal},
		})
		h := admit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if p := spillway.PriorityFrom(r.Context()); !trusted && p != spillway.Normal || p < spillway.Low || p > spillway.Critical {
				t.Errorf("priority %v", p)
			}
			if end, ok := r.Context().Deadline(); ok && end.After(time.Now().Add(24*time.Hour)) {
				t.Errorf("a deadline in %v", time.Until(end))
			}
		}))
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		for name, value := range map[string]string{
			admissionhttp.HeaderPriority: priority, admissionhttp.HeaderDeadline: deadline, "Accept": accept, "Upgrade": upgrade,
		} {
			r.Header[name] = []string{value}
		}
		h.ServeHTTP(w, r)
		if w.Code != 200 && w.Code != 503 {
			t.Errorf("status %d", w.Code)
		}
		if s := lim.Stats(); s.InFlight != 0 || s.LongInFlight != 0 || s.Queued != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// Handlers that time out, leave work behind, become streams or panic, all at once.
func TestEverySlotComesBackFromACrowd(t *testing.T) {
	lim := must(limiter.New(limiter.Config{}))
	admit := middleware(t, admissionhttp.Config{Limiter: lim, Hold: true, FairShares: true})
	h := admit(http.TimeoutHandler(held(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		release := admissionhttp.Hold(r.Context())
		go release()
		switch r.URL.Path {
		case "/late":
			<-r.Context().Done()
		case "/panic":
			panic("a bug")
		case "/stream":
			w.Header().Set("Content-Type", "text/event-stream")
		}
	})), 5*time.Millisecond, ""))
	stream := admit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		release := admissionhttp.Hold(r.Context())
		go release()
		events(w, r)
	}))
	var crowd sync.WaitGroup
	for i := range 400 {
		crowd.Go(func() {
			defer func() { _ = recover() }()
			get([]http.Handler{h, h, h, stream}[i%4], []string{"/late", "/panic", "/", "/"}[i%4])
		})
	}
	crowd.Wait()
	// Drain waits for the rest. A WaitGroup would race with handlers that begin after their
	// timeout.
	check(t, lim.Drain(t.Context()))
	s := lim.Stats()
	if s.Offered != 400 || s.Offered != s.Admitted+s.Rejected+s.Cancelled || s.Admitted != s.Completed || s.InFlight != 0 || s.LongInFlight != 0 {
		t.Errorf("%+v", s)
	}
}
