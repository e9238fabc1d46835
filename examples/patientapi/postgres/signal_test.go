package postgres

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/examples/patientapi/internal/postgrestest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// Two connections, and questions that do not end: what waits for a connection shows
// before any of them has ended, and the limiter refuses in its name.
func TestWaitForAConnectionPressesALimiter(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t, 0)
	s := open(t, Config{URL: d.URL, Connections: 2})
	// More than there are connections: that is for the signal to find out.
	lim, err := limiter.New(limiter.Config{Law: limit.NewFixed(20), QueueSize: -1, Signals: []limiter.Signal{limiter.Gauge("database", s.Wait, 0.05)}})
	require.NoError(t, err)
	ask := func(ctx context.Context) error { return lookup(ctx, s) }
	unlock := lock(t, d.URL)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	refused := make(chan *spillway.Rejection, 1)
	await.True(t, "a request is refused because of the database", func() bool {
		wg.Go(func() {
			err := lim.Do(ctx, ask)
			if rejection, ok := errors.AsType[*spillway.Rejection](err); ok && rejection.Cause == "database" {
				select {
				case refused <- rejection:
				default:
				}
			}
		})
		return len(refused) == 1
	})
	if rejection := <-refused; rejection.Reason != spillway.Signal {
		t.Errorf("%v", rejection)
	}
	if p := lim.Stats().Pressure; p.By != "database" || p.Cap < 1 {
		t.Errorf("pressure %+v", p)
	}
	cancel()
	unlock()
	wg.Wait()
	await.True(t, "the limiter is released", func() bool {
		return lim.Do(t.Context(), ask) == nil && lim.Stats().Pressure.Cap == 0
	})
}
