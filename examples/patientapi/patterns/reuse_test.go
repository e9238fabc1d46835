package patterns

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

// An answer that grew for a hundred patients is not kept for one, and what cannot be
// cleared is not kept at all.
func TestAnswersAreReusedByTypeAndOnlyIfTheyCanBeCleared(t *testing.T) {
	r := newRunner(t, Optimized, setup{Store: store(t, nil), Workers: 1, QueueSize: 1})
	for range 50 {
		single, err := r.Lookup(t.Context(), "P000001")
		require.NoError(t, err)
		single.Release()
		batch, err := r.LookupBatch(t.Context(), []string{"P000001", "P000002"})
		require.NoError(t, err)
		batch.Release()
		plain, err := Run(t.Context(), r.Runner, func(_ context.Context, n *int) error { *n = 7; return nil })
		if err != nil || plain.Value != 7 {
			t.Fatal(plain, err)
		}
		plain.Release()
	}
	single, batch := answers[patientapi.Patient](r.Runner).Stats(), answers[patientapi.Batch](r.Runner).Stats()
	if s := r.Stats(); single.Gets != 50 || batch.Gets != 50 || s.Responses != 100 || s.Offered != 150 || answers[int](r.Runner) != nil {
		t.Errorf("%d single answers, %d batches; %+v", single.Gets, batch.Gets, s)
	}
	assert.NoError(t, r.Drain(t.Context()))
}

// An answer on its way to a caller that has left is not given back. If the worker did
// it, the answer would be another patient's while this caller might still read it.
func TestResponseOfACallerWhoLeftIsNotReused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		r := newRunner(t, Optimized, setup{Workers: 1, QueueSize: 1, Store: store(t, func(context.Context, string) error {
			<-leave
			return nil
		})})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := r.Lookup(ctx, "P000001"); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		synctest.Wait()
		cancel()
		wg.Wait()
		close(leave)
		assert.NoError(t, r.Drain(t.Context()))
		if s := answers[patientapi.Patient](r.Runner).Stats(); s.Gets != 1 || s.InUse != 1 {
			t.Errorf("%d taken, %d in use; want 1, 1", s.Gets, s.InUse)
		}
	})
}
