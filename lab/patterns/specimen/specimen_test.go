package specimen

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// outcome counts answers.
type outcome struct{ ok, failed, full int }

// flood sends that many requests of each client back to back.
func flood(s *Service, clients, each int) outcome {
	var mu sync.Mutex
	var sum outcome
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			for n := range each {
				reply, err := s.Look(context.Background(), ID(c*each+n))
				mu.Lock()
				switch {
				case errors.Is(err, ErrFull):
					sum.full++
				case err != nil:
					sum.failed++
				default:
					sum.ok++
				}
				mu.Unlock()
				if err == nil {
					s.Release(reply)
				}
			}
		})
	}
	all.Wait()
	return sum
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

func always(latency time.Duration) *Simulated {
	return &Simulated{MinLatency: latency, MaxLatency: latency}
}

func TestARequestWithoutRoomWaits100msAndIsRefused(t *testing.T) {
	for _, pattern := range []string{WorkerPool, Optimized, Warm} {
		inVirtualTime(t, pattern, always(time.Second), func(s *Service) {
			var served sync.WaitGroup
			served.Go(func() {
				if got := flood(s, 120, 1); got != (outcome{ok: 120}) {
					t.Errorf("%s: as many requests as fit into workers and queue: %+v", pattern, got)
				}
			})
			synctest.Wait()
			start := time.Now()
			_, err := s.Look(context.Background(), ID(1))
			if took := time.Since(start); !errors.Is(err, ErrFull) || took != 100*time.Millisecond {
				t.Errorf("%s: %v after %v", pattern, err, took)
			}
			served.Wait()
		})
	}
}

func TestARequestThatFindsRoomInTimeIsAnswered(t *testing.T) {
	inVirtualTime(t, WorkerPool, always(99*time.Millisecond), func(s *Service) {
		if got := flood(s, 140, 1); got != (outcome{ok: 140}) {
			t.Errorf("%+v", got)
		}
	})
}

// While the first look-ups last, 880 of 1,000 clients burn their ten requests; the 120 in
// the pool do the rest.
func TestTheSizesDecideWhatIsRefusedAtHighLoad(t *testing.T) {
	inVirtualTime(t, WorkerPool, always(2*time.Second), func(s *Service) {
		if got := flood(s, 1000, 10); got != (outcome{ok: 1200, full: 8800}) {
			t.Errorf("%+v", got)
		}
	})
}

func TestNaiveLooksEverythingUpAtOnce(t *testing.T) {
	store := always(time.Second)
	inVirtualTime(t, Naive, store, func(s *Service) {
		start := time.Now()
		if got := flood(s, 1000, 1); got != (outcome{ok: 1000}) {
			t.Errorf("%+v", got)
		}
		if took := time.Since(start); took != time.Second || store.PeakCalls() != 1000 {
			t.Errorf("%v, %d look-ups at once", took, store.PeakCalls())
		}
	})
}

// inBubbles is how many goroutines the runtime has in bubbles. Those of earlier tests that
// are just ending are none of them, unlike in runtime.NumGoroutine.
func inBubbles() int {
	stacks := make([]byte, 4<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), ", synctest bubble ")
}

func TestGoroutinesAreCountedAsTheRuntimeCountsThem(t *testing.T) {
	for pattern, want := range map[string]int{Naive: 500, WorkerPool: 20} {
		inVirtualTime(t, pattern, always(time.Second), func(s *Service) {
			var callers sync.WaitGroup
			before := inBubbles() - s.Goroutines()
			for c := range 500 {
				callers.Go(func() { _, _ = s.Look(context.Background(), ID(c)) })
			}
			time.Sleep(200 * time.Millisecond) // those without room have been refused
			synctest.Wait()
			waiting := 500
			if pattern != Naive {
				waiting = 120
			}
			if got, runtimes := s.Goroutines(), inBubbles()-before-waiting; got != want || runtimes != want {
				t.Errorf("%s: %d goroutines, the runtime counts %d, want %d", pattern, got, runtimes, want)
			}
			callers.Wait()
			synctest.Wait()
			if got := s.Goroutines(); pattern == Naive && got != 0 {
				t.Errorf("%d goroutines are left", got)
			}
		})
	}
}

func TestAStoreThatComputesDoesNotWait(t *testing.T) {
	computed := 0
	store := &Simulated{MinLatency: time.Hour, MaxLatency: time.Hour, Work: func() { computed++ }}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if p, err := store.Patient(ID(7)); err != nil || p.ID != ID(7) || computed != 1 || time.Since(start) != 0 {
			t.Errorf("%+v, %v, computed %d times in %v", p, err, computed, time.Since(start))
		}
	})
}

func TestAPoolNeverLooksUpMoreThanItsWorkers(t *testing.T) {
	store := always(time.Second)
	inVirtualTime(t, Optimized, store, func(s *Service) { flood(s, 200, 2) })
	if store.PeakCalls() != 20 {
		t.Errorf("%d look-ups at once", store.PeakCalls())
	}
}

func TestTheStoreTakes50To100msAndFailsOnceInTwenty(t *testing.T) {
	store := &Simulated{MinLatency: 50 * time.Millisecond, MaxLatency: 100 * time.Millisecond, ErrorRate: 0.05, Seed: 3}
	inVirtualTime(t, Naive, store, func(s *Service) {
		start := time.Now()
		got := flood(s, 100, 200)
		if mean := time.Since(start) / 200; mean < 75*time.Millisecond || mean > 80*time.Millisecond {
			t.Errorf("a mean of %v for the slowest of 100 clients", mean)
		}
		if got.failed < 800 || got.failed > 1200 || got.ok+got.failed != 20_000 {
			t.Errorf("%+v", got)
		}
	})
}

func TestOnlyAReceiverThatGivesBackMakesAPoolReuse(t *testing.T) {
	for _, pattern := range []string{Optimized, Warm} {
		inVirtualTime(t, pattern, &Simulated{ErrorRate: 0.05}, func(s *Service) {
			flood(s, 100, 10)
			gets, made, _ := s.Replies()
			flood(s, 100, 200)
			allGets, allMade, pooled := s.Replies()
			gets, made = allGets-gets, allMade-made
			reused := float64(gets-made) / float64(gets)
			if !pooled || gets != 20_000 {
				t.Errorf("%s: %d", pattern, gets)
			}
			// The race detector makes sync.Pool drop one object in four.
			if pattern == Warm && reused < 0.6 || pattern == Optimized && reused > 0.06 {
				t.Errorf("%s: %.3f reused", pattern, reused)
			}
		})
	}
	inVirtualTime(t, WorkerPool, &Simulated{}, func(s *Service) {
		if _, _, ok := s.Replies(); ok {
			t.Error("a pool of workers that has replies")
		}
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
	if _, err := New("fast", always(0), Config{}); err == nil {
		t.Error("no error")
	}
}
