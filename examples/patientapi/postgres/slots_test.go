package postgres

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

func TestWaitIsThatForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(2)
		want := func(mean time.Duration) {
			t.Helper()
			if got := s.mean(); got != mean {
				t.Errorf("mean wait %v, want %v", got, mean)
			}
		}
		want(0) // of nobody
		for range 2 {
			require.NoError(t, s.take(t.Context()))
		}
		time.Sleep(time.Second) // they work, and nobody waits
		want(0)

		var wg sync.WaitGroup
		wg.Go(func() { _ = s.take(t.Context()) })
		wg.Go(func() { _ = s.take(t.Context()) })
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		want(100 * time.Millisecond) // also where nothing ends: a hung database shows
		time.Sleep(200 * time.Millisecond)
		want(200 * time.Millisecond)
		s.give()
		synctest.Wait()
		time.Sleep(100 * time.Millisecond)
		s.give()
		wg.Wait()
		want(50 * time.Millisecond) // one of the two waited 100 ms more
		if st := s.stats(); st.waiting != 0 || st.waited != 700*time.Millisecond || st.peak != 2 || st.last != 50*time.Millisecond {
			t.Errorf("%+v", st)
		}
	})
}

func TestEndedWaitTakesNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1)
		require.NoError(t, s.take(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.take(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		s.give()
		if err := s.take(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a slot was taken after the end: %v", err)
		}
		if st := s.stats(); st.waiting != 0 || len(s.free) != 1 {
			t.Errorf("%+v, %d free", st, len(s.free))
		}
	})
}

func TestRestingSlotComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1)
		require.NoError(t, s.take(t.Context()))
		s.rest(time.Second)
		began := time.Now()
		if err := s.take(t.Context()); err != nil || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
