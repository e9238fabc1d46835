package admissionhttp_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// advised returns the mean of Retry-After over n refusals in a row, and the number of distinct
// values.
func advised(t *testing.T, h http.Handler, n int) (mean float64, values int) {
	t.Helper()
	seen := map[int]bool{}
	for range n {
		after, err := strconv.Atoi(get(h, "/").Header().Get("Retry-After"))
		if err != nil || after < 1 || after > 60 {
			t.Fatalf("Retry-After %d %v", after, err)
		}
		mean += float64(after) / float64(n)
		seen[after] = true
	}
	return mean, len(seen)
}

func TestAdviceRisesWhileRefusalsContinue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := one(t)
		_, _ = lim.Acquire(t.Context())
		h := middleware(t, admissionhttp.Config{Limiter: lim})(ok)
		first, values := advised(t, h, 1000)
		if first > 2.1 || values < 2 {
			t.Errorf("at the onset %v s, %d values", first, values)
		}
		for range 120 { // a minute of refusals
			time.Sleep(500 * time.Millisecond)
			get(h, "/")
		}
		late, values := advised(t, h, 1000)
		if late < 2*first || values < 4 {
			t.Errorf("after a minute %v s, %d values; at the onset %v s", late, values, first)
		}
		for range 1000 { // most of an hour
			time.Sleep(900 * time.Millisecond)
			get(h, "/")
		}
		if bound, values := advised(t, h, 1000); values < 10 {
			t.Errorf("after most of an hour %v s, %d values", bound, values)
		}
		time.Sleep(10 * time.Second)
		if again, _ := advised(t, h, 1000); again > 1.5*first {
			t.Errorf("after a pause %v s, %v s at first", again, first)
		}
	})
}

// One caller whose requests come every second without enough time once made the advice for all
// others ten times as long, and caused a recording every minute.
func TestADeadlineThatIsTooCloseIsNoShedding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := must(limiter.New(limiter.Config{Law: limit.NewFixed(1), QueueSize: -1}))
		h := middleware(t, admissionhttp.Config{Limiter: lim})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			time.Sleep(10 * time.Millisecond)
		}))
		for range 100 {
			get(h, "/") // the limiter learns how long work takes
		}
		for i := range 1000 {
			time.Sleep(900 * time.Millisecond)
			if w := ask(h, t.Context(), admissionhttp.HeaderDeadline, []string{"0", "2"}[i%2]); i%64 == 0 && w.Code != 503 {
				t.Fatalf("status %d", w.Code)
			}
		}
		_, _ = lim.Acquire(t.Context())
		if mean, _ := advised(t, h, 1000); mean > 2.1 {
			t.Errorf("at the onset others are told to wait %v s", mean)
		}
	})
}

func TestOneLineAPeriodAndNothingOfARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		lim := one(t)
		permit, _ := lim.Acquire(t.Context())
		h := middleware(t, admissionhttp.Config{
			Limiter: lim, Logger: slog.New(slog.NewTextHandler(&out, nil)), FairShares: true,
			Caller: func(*http.Request) string { return "secret" },
		})(ok)
		lines := func() int {
			synctest.Wait()
			return strings.Count(out.String(), "shedding")
		}
		get(h, "/?ssn=secret")
		if n := lines(); n != 1 || !strings.Contains(out.String(), "reasons.queue_full=1 priorities.normal=1") {
			t.Fatalf("the onset: %q", &out)
		}
		for range 40 { // 20 s
			time.Sleep(500 * time.Millisecond)
			for range 10 {
				get(h, "/?ssn=secret")
			}
		}
		if n := lines(); n != 3 || strings.Contains(out.String(), "secret") {
			t.Errorf("%d lines:\n%s", n, &out)
		}
		permit.Release()
		for range 100 {
			time.Sleep(time.Second)
			get(h, "/")
		}
		if n := lines(); n > 5 || !strings.Contains(out.String(), "over") {
			t.Errorf("%d lines while nothing is refused:\n%s", n, &out)
		}
	})
}

// With its own limiter, the middleware logs the refusals that a dry run would have made.
func TestADryRunIsLogged(t *testing.T) {
	t.Setenv("SPILLWAY_MODE", "dryrun")
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		backend := make(chan struct{}, 10)
		h := middleware(t, admissionhttp.Config{Logger: slog.New(slog.NewTextHandler(&out, nil))})(
			http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				backend <- struct{}{}
				time.Sleep(100 * time.Millisecond)
				<-backend
			}))
		for range 2500 { // 10 s at two and a half times the capacity of the backend
			time.Sleep(4 * time.Millisecond)
			go func() {
				if w := ask(h, t.Context(), admissionhttp.HeaderDeadline, "1100"); w.Code != 200 {
					t.Errorf("%d", w.Code)
				}
			}()
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if n := strings.Count(out.String(), "\n"); n == 0 || n > 6 || strings.Count(out.String(), "dry_run=true") != n {
			t.Errorf("%d lines:\n%s", n, &out)
		}
	})
}

func TestAKeyWithoutALimiterIsAnErrorOfTheServer(t *testing.T) {
	var out bytes.Buffer
	family, _ := limiter.NewKeyed(limiter.KeyedConfig{New: func(string) limiter.Config { return limiter.Config{MaxWait: -1} }})
	h := middleware(t, admissionhttp.Config{
		Keyed: family, Class: func(*http.Request) string { return "a" }, Logger: slog.New(slog.NewTextHandler(&out, nil)),
	})(ok)
	for range 5 {
		if w := get(h, "/"); w.Code != 500 {
			t.Errorf("%d", w.Code)
		}
	}
	if n := strings.Count(out.String(), "MaxWait"); n != 1 {
		t.Errorf("%s", &out)
	}
}

func TestTheOnsetOfSheddingIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := one(t)
		_, _ = lim.Acquire(t.Context())
		var calls atomic.Int64
		h := middleware(t, admissionhttp.Config{Limiter: lim, OnShedding: func() { calls.Add(1) }})(ok)
		for _, want := range []int64{1, 1, 2} { // of a minute each onset but the first is not told
			for range 100 {
				get(h, "/")
			}
			synctest.Wait()
			if n := calls.Load(); n != want {
				t.Errorf("%d calls, want %d", n, want)
			}
			time.Sleep(40 * time.Second)
		}
	})
}
