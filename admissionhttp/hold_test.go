package admissionhttp_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/limit"
)

const timeout = time.Second

// held returns h, which holds its slot until h returns.
func held(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer admissionhttp.Hold(r.Context())()
		h.ServeHTTP(w, r)
	})
}

// slow works for three times the timeout, and ignores its context.
func slow(http.ResponseWriter, *http.Request) { time.Sleep(3 * timeout) }

func TestInsideOfTimeoutHandlerTheSlotIsHeldWhileWorkRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, ends := taught(t, 1)
		h := http.TimeoutHandler(middleware(t, admissionhttp.Config{Limiter: lim})(http.HandlerFunc(slow)), timeout, "")
		if w := get(h, "/"); w.Code != 503 {
			t.Fatalf("%d", w.Code)
		}
		if n := lim.Stats().InFlight; n != 1 {
			t.Fatalf("%d in flight while the handler runs", n)
		}
		time.Sleep(3 * timeout)
		synctest.Wait()
		atRest(t, lim, 1)
		if (*ends)[0] != limit.Deadline {
			t.Errorf("%v", *ends)
		}
	})
}

func TestOutsideOfTimeoutHandlerHoldKeepsTheSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, ends := taught(t, 1)
		protect := middleware(t, admissionhttp.Config{Limiter: lim, Hold: true})
		h := protect(http.TimeoutHandler(held(http.HandlerFunc(slow)), timeout, ""))
		if w := get(h, "/"); w.Code != 503 {
			t.Fatalf("%d", w.Code)
		}
		if n := lim.Stats().InFlight; n != 1 {
			t.Fatalf("%d in flight while the handler runs", n)
		}
		time.Sleep(3 * timeout)
		synctest.Wait()
		atRest(t, lim, 1)
		if (*ends)[0] != limit.Deadline {
			t.Errorf("%v", *ends)
		}
	})
}

func TestTheLastPartEndsThePermitOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, ends := taught(t, 1)
		parts := make(chan func(), 3)
		late := make(chan context.Context, 1)
		h := middleware(t, admissionhttp.Config{Limiter: lim, Hold: true})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for range 3 {
				parts <- admissionhttp.Hold(r.Context())
			}
			late <- r.Context()
			w.WriteHeader(http.StatusAccepted)
		}))
		get(h, "/")
		for range 3 {
			if n := lim.Stats().InFlight; n != 1 {
				t.Fatalf("%d in flight", n)
			}
			release := <-parts
			release()
			release()
		}
		admissionhttp.Hold(<-late)() // after the end, Hold does nothing
		atRest(t, lim, 1)
		if len(*ends) != 1 || (*ends)[0] != limit.Success {
			t.Errorf("%v", *ends)
		}
	})
}

func TestHoldWithoutASlotDoesNothing(t *testing.T) {
	admissionhttp.Hold(t.Context())()
	lim := one(t)
	h := middleware(t, admissionhttp.Config{Limiter: lim})(held(ok))
	if w := get(h, "/"); w.Code != 200 {
		t.Fatal(w.Code)
	}
	atRest(t, lim, 1)
}
