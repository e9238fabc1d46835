package httpapi

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/front"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/internal/await"
)

// serveOne is the adaptive API with room for one request, which is running.
func serveOne(t *testing.T, deadlines front.Deadlines) (s *server, finish func()) {
	t.Helper()
	s = serveOver(t, patterns.Adaptive, patterns.Config{}, Config{Deadlines: deadlines})
	require.NoError(t, s.runner.Limiter().SetBounds(1, 1))
	running, end := make(chan struct{}), make(chan struct{})
	s.store.script["P000001"] = func(context.Context) error { close(running); <-end; return nil }
	var wg sync.WaitGroup
	wg.Go(func() {
		if a, err := s.try(context.WithoutCancel(t.Context()), "GET", "/api/v1/patients?id=P000001", ""); err != nil || a.status != 200 {
			t.Errorf("the admitted request got %d %s, %v", a.status, a.body, err)
		}
	})
	await.Receive(t, "the request runs", running)
	finish = sync.OnceFunc(func() { close(end); wg.Wait() })
	t.Cleanup(finish)
	return s, finish
}

// queued waits until n requests wait for admission.
func (s *server) queued(t *testing.T, n int) {
	t.Helper()
	await.True(t, "so many requests wait", func() bool { return s.runner.Stats().Queued == n })
}

func TestCriticalReadsGoFirstAndBulkLast(t *testing.T) {
	s, finish := serveOne(t, front.Deadlines{})
	var mu sync.Mutex
	var order []string
	note := func(class string) func(context.Context) error {
		return func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, class)
			return nil
		}
	}
	s.store.script["batch"], s.store.script["P000002"], s.store.script["P000003"] = note("bulk"), note("normal"), note("critical")
	var wg sync.WaitGroup
	for i, c := range []struct{ method, path, body string }{
		{"POST", "/api/v1/patients:batch", `{"ids":["P000001"]}`},
		{"GET", "/api/v1/patients?id=P000002", ""},
		{"GET", "/api/v1/patients/P000003", ""},
	} {
		wg.Go(func() {
			if a, err := s.try(t.Context(), c.method, c.path, c.body, jsonBody...); err != nil || a.status != 200 {
				t.Errorf("%s: %d %s, %v", c.path, a.status, a.body, err)
			}
		})
		s.queued(t, i+1)
	}
	finish()
	wg.Wait()
	if want := []string{"critical", "normal", "bulk"}; !slices.Equal(order, want) {
		t.Errorf("served %v, want %v", order, want)
	}
}

// A request that waits longer than its class may take is refused with a reason, and a
// probe beside it is answered.
func TestAWaitBeyondTheDeadlineOfTheClassIsRefused(t *testing.T) {
	s, _ := serveOne(t, front.Deadlines{Critical: time.Millisecond})
	a := s.do(t, "GET", "/api/v1/patients/P000002", "")
	problemIn(t, a, 503, "#temporary-reduced-capacity")
	if a.header.Get(reasonHeader) != "deadline_too_close" || a.header.Get("Retry-After") == "" {
		t.Errorf("%v", a.header)
	}
	for _, path := range []string{"/livez", "/readyz"} {
		if a := s.do(t, "GET", path, ""); a.status != 200 {
			t.Errorf("%s of a full service: %d", path, a.status)
		}
	}
	if o := s.Outcomes(); o.Rejected != 1 || o.BadInput+o.Error+o.Timeout+o.Abandoned != 0 {
		t.Errorf("%+v", o)
	}
}
