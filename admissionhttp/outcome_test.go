package admissionhttp_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// taught returns a limiter of n slots and the outcomes of its work. Calls of the observer do not
// overlap in these tests.
func taught(t *testing.T, n int) (*limiter.Limiter, *[]limit.Outcome) {
	t.Helper()
	var ends []limit.Outcome
	lim := must(limiter.New(limiter.Config{Law: limit.NewFixed(n), Observer: &limiter.Observer{
		Ended: func(e limiter.End) { ends = append(ends, e.Outcome) },
	}}))
	return lim, &ends
}

func TestWhatAnAnswerTeaches(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    limit.Outcome
	}{
		"nothing written":     {func(http.ResponseWriter, *http.Request) {}, limit.Success},
		"200":                 {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(nil) }, limit.Success},
		"404":                 {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, limit.Success},
		"429":                 {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }, limit.Failed},
		"408":                 {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(408) }, limit.Failed},
		"500":                 {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, limit.Failed},
		"503":                 {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, limit.Failed},
		"504":                 {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(504) }, limit.Deadline},
		"early hints":         {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(500) }, limit.Failed},
		"the first one holds": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200); w.WriteHeader(500) }, limit.Success},
		"503 for a shared budget": {func(w http.ResponseWriter, r *http.Request) {
			admissionhttp.Refuse(w, r, &spillway.Rejection{Reason: spillway.ReasonBudget, RetryAfter: time.Second})
		}, limit.Failed},
		"503 with Retry-After": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(503)
		}, limit.Overload},
		"refused below": {func(w http.ResponseWriter, r *http.Request) {
			admissionhttp.Refuse(w, r, &spillway.Rejection{Reason: spillway.ReasonQueueFull})
		}, limit.Overload},
		"refused below for its own deadline": {func(w http.ResponseWriter, r *http.Request) {
			admissionhttp.Refuse(w, r, &spillway.Rejection{Reason: spillway.ReasonDeadlineTooClose})
		}, limit.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			lim, ends := taught(t, 1)
			get(middleware(t, admissionhttp.Config{Limiter: lim})(c.handler), "/")
			if len(*ends) != 1 || (*ends)[0] != c.want {
				t.Errorf("%v, want %v", *ends, c.want)
			}
		})
	}
}

func TestAPanicIsAFailureAndNoSample(t *testing.T) {
	lim, ends := taught(t, 1)
	h := middleware(t, admissionhttp.Config{Limiter: lim})(ending)
	func() {
		defer func() {
			if v := recover(); v != "a bug" {
				t.Errorf("recovered %v", v)
			}
		}()
		get(h, "/panic")
	}()
	if len(*ends) != 1 || (*ends)[0] != limit.Failed {
		t.Errorf("%v", *ends)
	}
}

func TestAnOutcomeOfOnesOwn(t *testing.T) {
	lim, ends := taught(t, 1)
	h := middleware(t, admissionhttp.Config{Limiter: lim, Outcome: func(status int, header http.Header, usual error) error {
		if header.Get("X-Panic") != "" {
			panic("in Outcome")
		}
		if status == 404 {
			return errors.New("no sample")
		}
		return usual
	}})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Panic", r.URL.Query().Get("panic"))
		w.WriteHeader(404)
	}))
	get(h, "/")
	func() {
		defer func() { _ = recover() }()
		get(h, "/?panic=1")
	}()
	if len(*ends) != 2 || (*ends)[0] != limit.Failed || (*ends)[1] != limit.Failed {
		t.Errorf("%v", *ends)
	}
}

func TestALimitOfTimeIsALowerBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, ends := taught(t, 1)
		h := middleware(t, admissionhttp.Config{
			Limiter: lim, Deadlines: map[spillway.Priority]time.Duration{spillway.Normal: time.Second},
		})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			w.WriteHeader(500)
		}))
		get(h, "/")
		if len(*ends) != 1 || (*ends)[0] != limit.Deadline {
			t.Errorf("%v", *ends)
		}
	})
}
