package peers

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
)

// The questions about admission, in the order of the table.
var aboutAdmission = []question[guard]{
	{"Work panics, with two slots three times", survives},
	{"A handler panics, with two slots three times", survivesHTTP},
	{"A slot is given back twice", twice},
	{"No slot is free, and the caller will not wait", turnedAway},
	{"No slot is free, and the caller's context ends while it waits", gives},
	{"What an HTTP client is told when no slot is free", told},
}

func TestTheTableOfAdmissionIsWhatTheLibrariesDo(t *testing.T) {
	compare(t, "admission.md", aboutAdmission, guards, func(g guard) string { return g.name }, func(g guard) bool { return true })
}

func survives(_ *testing.T, g guard) string {
	gate := g.open(2)
	if gate.do == nil {
		return "the caller gives the slot back"
	}
	for range 3 {
		func() {
			defer func() { _ = recover() }()
			_ = gate.do(func() error { panic("broken") })
		}()
	}
	if _, err := gate.try(); err != nil {
		return "**the slots are lost**"
	}
	return "the slots come back"
}

func survivesHTTP(_ *testing.T, g guard) string {
	gate := g.open(2)
	if gate.handler == nil {
		return "no middleware"
	}
	broken := true
	h := gate.handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if broken {
			panic(http.ErrAbortHandler)
		}
	}))
	for range 3 {
		func() {
			defer func() { _ = recover() }() // as net/http does
			ask(h)
		}()
	}
	broken = false
	if ask(h).Code != http.StatusOK {
		return "**the slots are lost**"
	}
	return "the slots come back"
}

func twice(_ *testing.T, g guard) string {
	gate := g.open(1)
	release := must(gate.try())
	release()
	ended := make(chan any, 1)
	go func() {
		defer func() { ended <- recover() }()
		release()
	}()
	synctest.Wait()
	select {
	case v := <-ended:
		if v != nil {
			return "panic"
		}
	default:
		_ = must(gate.try()) // which ends it
		<-ended
		return "**it hangs**"
	}
	_ = must(gate.try())
	if _, err := gate.try(); err == nil {
		return "**there is a slot too many**"
	}
	return "nothing happens"
}

func turnedAway(_ *testing.T, g guard) string {
	gate := g.open(1)
	release := must(gate.try())
	defer release()
	_, err := gate.try()
	return refusal(err)
}

func gives(t *testing.T, g guard) string {
	gate := g.open(1)
	release := must(gate.try())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		after, err := gate.acquire(ctx)
		if err == nil {
			after()
		}
		done <- err
	}()
	synctest.Wait()
	cancel()
	synctest.Wait()
	select {
	case err := <-done:
		release()
		must(gate.acquire(none))() // tells those that wait, also in a goroutine that a library left
		if err == nil {
			t.Error(g.name, "there were two slots")
		}
		return "the wait ends"
	default:
		release()
		<-done
		return "**it waits on**"
	}
}

func told(_ *testing.T, g guard) string {
	gate := g.open(1)
	if gate.handler == nil {
		return "no middleware"
	}
	var h http.Handler
	said := "nothing"
	h = gate.handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			return
		}
		w := httptest.NewRecorder() // while this one runs, another comes
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/another", nil))
		said = http.StatusText(w.Code)
		for _, name := range []string{"Retry-After", "Spillway-Reason"} {
			if w.Header().Get(name) != "" {
				said += ", " + name
			}
		}
	}))
	ask(h)
	return said
}

func ask(h http.Handler) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	return w
}
