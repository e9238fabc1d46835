package admissionhttp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/internal/logtest"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// The log knew only of refusals: the last word beside a service that answered nothing but 500 was that shedding is
// over.
func TestTheLogNamesATroubleAndWhatToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := must(limiter.New(limiter.Config{Name: "http", Law: limit.NewFixed(8)}))
		var log logtest.Log
		fails := false
		mux := http.NewServeMux()
		for _, route := range []string{"GET /a", "GET /b"} {
			mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
				if fails && r.URL.Path == "/b" {
					w.WriteHeader(http.StatusInternalServerError)
				}
			})
		}
		h := middleware(t, admissionhttp.Config{Limiter: lim, Logger: log.Logger()})(mux)
		serve := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				for _, path := range []string{"/a", "/b"} {
					h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
				}
			}
			synctest.Wait()
		}
		serve(time.Minute)
		fails = true
		serve(95 * time.Second)
		fails = false
		serve(time.Minute)
		got := log.Lines()
		if len(got) != 3 {
			t.Fatalf("%d lines:\n%s", len(got), strings.Join(got, "\n"))
		}
		for i, wants := range [][]string{
			{"level=WARN", "trouble: 100 % of GET /b fails", "limiter=http", "to_do="},
			{"level=WARN", "trouble: 100 % of GET /b fails", "at what was deployed last"},
			{"level=INFO", "trouble is over", "after=2m0s"},
		} {
			for _, want := range wants {
				if !strings.Contains(got[i], want) {
					t.Errorf("no %q in: %s", want, got[i])
				}
			}
		}
	})
}
