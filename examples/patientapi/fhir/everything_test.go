package fhir

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
)

// faulty is a store that fails the questions that fail names, counted from 1.
type faulty struct {
	patientapi.Store
	calls atomic.Int64
}

func newFaulty(store patientapi.Store, fail func(call int64) error) *faulty {
	f := new(faulty)
	f.Store = patientapi.Around(store, func(ctx context.Context, _ patientapi.Question, ask func(context.Context) error) error {
		if err := fail(f.calls.Add(1)); err != nil {
			return err
		}
		return ask(ctx)
	})
	return f
}

const exportJob = "Bearer export-job"

// broken reports whether the handler cut the connection.
func broken(h http.Handler, target string) (w *httptest.ResponseRecorder, cut bool) {
	w = httptest.NewRecorder()
	defer func() { cut = recover() == http.ErrAbortHandler }()
	r := httptest.NewRequest("GET", target, nil)
	r.Header.Set("Authorization", exportJob)
	h.ServeHTTP(w, r)
	return w, false
}

// A client took the half of an export for all of it.
func TestAnExportThatFailsIsBrokenOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := func(call int64) error {
			if call > 5 {
				return patientapi.ErrUnavailable
			}
			return nil
		}
		api := newAPI(t, newFaulty(newStore(t), down), patterns.Adaptive)
		w, cut := broken(api, "/fhir/Patient/$everything")
		if !cut || w.Code != 200 || json.Valid(w.Body.Bytes()) {
			t.Errorf("%d, broken off: %t; %.80s", w.Code, cut, w.Body)
		}
	})
}

// With a database that fails one time in twenty, no export came to its end.
func TestAnExportHasPatienceWithTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nowAndThen := func(call int64) error {
			if call > 1 && call%3 > 0 {
				return patientapi.ErrUnavailable
			}
			return nil
		}
		api := newAPI(t, newFaulty(newStore(t), nowAndThen), patterns.Adaptive)
		if w, cut := broken(api, "/fhir/Patient/$everything"); cut || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%d, broken off: %t", w.Code, cut)
		}
	})
}

// While an export runs it holds no slot: what is urgent is answered, and what the export
// takes is no sample.
func TestAnExportIsCountedApartAndBounded(t *testing.T) {
	hold, held := make(chan struct{}), make(chan struct{}, 1)
	store := newFaulty(newStore(t), func(call int64) error {
		if call == 2 { // the observations of the first patient: the answer has begun
			held <- struct{}{}
			<-hold
		}
		return nil
	})
	api := newAPI(t, store, patterns.Adaptive, func(c *Config) { c.Exports = 1 })
	first := make(chan *answer)
	go func() { first <- get(t, api, "/fhir/Patient/$everything", "Authorization", exportJob) }()
	<-held
	if a := get(t, api, "/fhir/Patient/$everything", "Authorization", exportJob); a.Code != 503 || a.Issue[0].Code != "throttled" {
		t.Errorf("a second one: %d", a.Code)
	}
	if a := get(t, api, "/fhir/Patient/P000002"); a.Code != 200 {
		t.Errorf("a read: %d", a.Code)
	}
	close(hold)
	if a := <-first; a.Code != 200 {
		t.Errorf("the first: %d", a.Code)
	}
	s := api.cfg.Runner.Limiter().Stats()
	if s.InFlight != 0 || s.Service.Count() > 2 { // the read, and the refused one
		t.Errorf("%d in flight, %d samples", s.InFlight, s.Service.Count())
	}
}

// A service that stops waited for its exports to the end of its patience.
func TestAnExportEndsWhenTheServiceStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var api *API
		drained := make(chan error, 1)
		store := newFaulty(newStore(t), func(call int64) error {
			if call == 5 {
				go func() { drained <- api.cfg.Runner.Drain(t.Context()) }()
				synctest.Wait()
			}
			return nil
		})
		api = newAPI(t, store, patterns.Adaptive)
		if _, cut := broken(api, "/fhir/Patient/$everything"); !cut || store.calls.Load() != 5 {
			t.Errorf("broken off: %t, after %d questions", cut, store.calls.Load())
		}
		assert.NoError(t, <-drained)
	})
}

// A server's deadline for a whole answer cut long exports off, and its deadline for the
// request ended them.
func TestAnExportOutlivesTheDeadlinesOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(int64) error { time.Sleep(time.Second); return nil }
		api := newAPI(t, newFaulty(newStore(t), slow), patterns.Adaptive)
		now := time.Now()
		w := &connection{ResponseRecorder: httptest.NewRecorder(), reads: true, readBy: now.Add(10 * time.Second), writeBy: now.Add(10 * time.Second)}
		if cut := w.serve(t.Context(), api); cut || !json.Valid(w.Body.Bytes()) || time.Since(now) < 10*time.Second {
			t.Errorf("broken off: %t, after %v and %d bytes", cut, time.Since(now), w.Body.Len())
		}
		if !w.readBy.IsZero() {
			t.Error("the deadline for the request still holds")
		}
	})
}

// Clients that read nothing held all places for as long as they liked.
func TestAnExportGivesItsPlaceBackWhenItsClientReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places = 2
		api := newAPI(t, endless{newStore(t)}, patterns.Adaptive, func(c *Config) { c.Exports = places })
		began := time.Now()
		cut := make(chan bool, places)
		for range places {
			w := &connection{ResponseRecorder: httptest.NewRecorder()}
			go func() { cut <- w.serve(t.Context(), api) }()
		}
		synctest.Wait()
		if a := get(t, api, "/fhir/Patient/$everything", "Authorization", exportJob); a.Code != 503 {
			t.Errorf("one more: %d", a.Code)
		}
		for range places {
			if !<-cut {
				t.Error("the answer ended as if it were whole")
			}
		}
		if took := time.Since(began); took != patience {
			t.Errorf("they held their places for %v", took)
		}
		if n := api.exports.Stats().InFlight; n != 0 {
			t.Errorf("%d places are taken", n)
		}
	})
}

// connection is a writer with deadlines, as that of a server is.
type connection struct {
	*httptest.ResponseRecorder
	reads           bool // at the other end somebody does
	readBy, writeBy time.Time
}

// serve asks for everybody and reports whether the handler cut the connection.
func (c *connection) serve(ctx context.Context, h http.Handler) (cut bool) {
	defer func() { cut = recover() == http.ErrAbortHandler }()
	r := httptest.NewRequestWithContext(ctx, "GET", "/fhir/Patient/$everything", nil)
	r.Header.Set("Authorization", exportJob)
	h.ServeHTTP(c, r)
	return false
}

func (c *connection) SetReadDeadline(by time.Time) error  { c.readBy = by; return nil }
func (c *connection) SetWriteDeadline(by time.Time) error { c.writeBy = by; return nil }

func (c *connection) Write(part []byte) (int, error) {
	if !c.reads {
		time.Sleep(time.Until(c.writeBy))
	}
	if !time.Now().Before(c.writeBy) {
		return 0, os.ErrDeadlineExceeded
	}
	return c.ResponseRecorder.Write(part)
}

// The export goes on only as the client reads.
func TestAnExportWaitsForItsClientAndEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty(endless{newStore(t)}, func(int64) error { return nil })
		api := newAPI(t, store, patterns.Adaptive)
		ctx, leave := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, "GET", "/fhir/Patient/$everything", nil)
		r.Header.Set("Authorization", exportJob)
		w := &reader{ResponseRecorder: httptest.NewRecorder(), room: make(chan struct{}), gone: ctx.Done()}
		ended := make(chan any)
		go func() {
			defer func() { ended <- recover() }()
			api.ServeHTTP(w, r)
		}()
		for range 20 {
			synctest.Wait()
			before := store.calls.Load()
			time.Sleep(time.Hour)
			if now := store.calls.Load(); now != before {
				t.Fatalf("%d questions while the client read nothing", now-before)
			}
			w.room <- struct{}{}
		}
		if n := store.calls.Load(); n < people {
			t.Errorf("%d questions", n)
		}
		leave()
		if v := <-ended; v != http.ErrAbortHandler {
			t.Errorf("the answer ended as if it were whole: %v", v)
		}
	})
}

// reader is a client that reads one part each time that it is told to.
type reader struct {
	*httptest.ResponseRecorder
	room chan struct{}
	gone <-chan struct{}
}

func (w *reader) Write(part []byte) (int, error) {
	select {
	case <-w.room:
		return w.ResponseRecorder.Write(part)
	case <-w.gone:
		return 0, io.ErrClosedPipe
	}
}

// endless always has more patients.
type endless struct{ patientapi.Store }

func (e endless) Search(ctx context.Context, q patientapi.PatientSearch, dst *patientapi.Page) error {
	q.After = ""
	err := e.Store.Search(ctx, q, dst)
	dst.More = true
	return err
}
