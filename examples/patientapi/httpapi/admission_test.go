package httpapi

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/internal/await"
)

// With room for one request, which is running, others wait.
func TestCriticalReadsGoFirstAndBulkLast(t *testing.T) {
	s := serveOver(t, patterns.Adaptive, patterns.Config{}, Config{})
	require.NoError(t, s.runner.Limiter().SetBounds(1, 1))
	running, end := make(chan struct{}), make(chan struct{})
	finish := sync.OnceFunc(func() { close(end) })
	t.Cleanup(finish)
	s.store.script["P000001"] = func(context.Context) error { close(running); <-end; return nil }
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
	s.store.script["patients"], s.store.script["P000002"], s.store.script["P000003"] = note("bulk"), note("normal"), note("critical")
	var wg sync.WaitGroup
	for i, c := range []struct{ method, path, body string }{
		{"GET", "/api/v1/patients?id=P000001", ""},
		{"POST", "/api/v1/patients:batch", `{"ids":["P000001"]}`},
		{"GET", "/api/v1/patients?id=P000002", ""},
		{"GET", "/api/v1/patients/P000003", ""},
	} {
		wg.Go(func() {
			if a, err := s.try(t.Context(), c.method, c.path, c.body, jsonBody...); err != nil || a.status != 200 {
				t.Errorf("%s: %d %s, %v", c.path, a.status, a.body, err)
			}
		})
		if i == 0 {
			await.Receive(t, "the request runs", running)
		}
		await.True(t, "the others wait", func() bool { return s.runner.Stats().Queued == i })
	}
	finish()
	wg.Wait()
	if want := []string{"critical", "normal", "bulk"}; !slices.Equal(order, want) {
		t.Errorf("served %v, want %v", order, want)
	}
}
