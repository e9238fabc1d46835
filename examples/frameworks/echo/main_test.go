package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/spillway-go/spillway/examples/frameworks/internal/exercise"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

func TestShedsAndRecovers(t *testing.T) { exercise.HTTP(t, handler, http.StatusInternalServerError) }

// An error that a handler returns is answered before admission ends: it is no sample.
func TestErrorsAreNoSamples(t *testing.T) {
	var ends []limit.Outcome
	lim, err := limiter.New(limiter.Config{Observer: &limiter.Observer{Ended: func(e limiter.End) { ends = append(ends, e.Outcome) }}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := handler(lim)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]struct {
		status  int
		outcome limit.Outcome
	}{"/orders/7": {http.StatusOK, limit.Success}, "/failing": {http.StatusBadGateway, limit.Failed}} {
		ends = nil
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want.status || len(ends) != 1 || ends[0] != want.outcome {
			t.Errorf("%s: status %d, outcomes %v; want %d, %v", path, w.Code, ends, want.status, want.outcome)
		}
	}
}
