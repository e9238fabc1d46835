package specimen

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestARequestThatFindsRoomInTimeIsAnswered(t *testing.T) {
	inVirtualTime(t, WorkerPool, &Simulated{MinLatency: 99 * time.Millisecond, MaxLatency: 99 * time.Millisecond}, func(s *Service) {
		var all sync.WaitGroup
		for n := range 141 { // the workers, the queue, what finds room within 100 ms, and one more
			all.Go(func() {
				if _, err := s.Look(context.Background(), ID(n)); (n == 140) != errors.Is(err, ErrFull) {
					t.Errorf("request %d: %v", n, err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
	})
}

// inVirtualTime runs a pattern at the published sizes.
func inVirtualTime(t *testing.T, pattern string, store *Simulated, f func(s *Service)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := New(pattern, store, Config{Workers: 20, Queue: 100, Wait: 100 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		f(s)
	})
}

func TestNoReplyCarriesAnotherPatient(t *testing.T) {
	for _, pattern := range []string{Naive, WorkerPool, Optimized, Warm} {
		inVirtualTime(t, pattern, &Simulated{ErrorRate: 0.3}, func(s *Service) {
			var all sync.WaitGroup
			for c := range 50 {
				all.Go(func() {
					for n := range 100 {
						id := ID(c*100 + n)
						reply, err := s.Look(context.Background(), id)
						if err != nil {
							continue
						}
						if !reply.Success || reply.Patient.ID != id {
							t.Errorf("%s: %+v for %s", pattern, reply, id)
						}
						s.Release(reply)
					}
				})
			}
			all.Wait()
		})
	}
}

func TestAnUnknownPatternIsAnError(t *testing.T) {
	if _, err := New("fast", &Simulated{}, Config{}); err == nil {
		t.Error("no error")
	}
}
