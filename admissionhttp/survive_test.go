package admissionhttp_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/limiter"
)

// quiet discards a server's messages about panics.
var quiet = log.New(io.Discard, "", 0)

// serve starts a server on the loopback, with its own client.
func serve(t *testing.T, h http.Handler, change ...func(*httptest.Server)) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = quiet
	for _, c := range change {
		c(s)
	}
	if s.EnableHTTP2 {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// fetch returns the status, or 0 for a truncated answer.
func fetch(t *testing.T, c *http.Client, url string) int {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0
	}
	return resp.StatusCode
}

// ending is a handler whose end is selected by the path.
var ending = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/panic":
		panic("a bug")
	case "/abort":
		_, _ = w.Write([]byte("half"))
		panic(http.ErrAbortHandler)
	case "/goexit":
		runtime.Goexit()
	}
})

// survives sends 300 requests that end badly, and then 50 that must succeed.
func survives(t *testing.T, s *httptest.Server) {
	t.Helper()
	for i := range 300 {
		fetch(t, s.Client(), s.URL+[]string{"/panic", "/abort", "/goexit"}[i%3])
	}
	for range 50 {
		if status := fetch(t, s.Client(), s.URL+"/"); status != http.StatusOK {
			t.Fatalf("status %d after bad ends", status)
		}
	}
}

func TestPanicsAbortsAndGoexitsCostNoSlot(t *testing.T) {
	for name, hold := range map[string]bool{"plain": false, "held": true} {
		t.Run(name, func(t *testing.T) {
			lim := one(t)
			h := http.Handler(ending)
			if hold {
				h = held(h)
			}
			survives(t, serve(t, middleware(t, admissionhttp.Config{Limiter: lim, Hold: hold})(h)))
			atRest(t, lim, 350)
		})
	}
	t.Run("Protect", func(t *testing.T) { survives(t, serve(t, admissionhttp.Protect(ending))) })
}

// atRest checks the counts of a limiter that admitted n and has no work.
func atRest(t *testing.T, lim *limiter.Limiter, n uint64) {
	t.Helper()
	if s := lim.Stats(); s.Admitted != n || s.Completed != n || s.InFlight != 0 || s.LongInFlight != 0 {
		t.Errorf("admitted %d, completed %d, in flight %d, long %d; want %d at rest",
			s.Admitted, s.Completed, s.InFlight, s.LongInFlight, n)
	}
}
