package patterns

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/examples/patientapi"
)

func TestOnlyOptimizedReuses(t *testing.T) {
	for _, name := range names {
		r := newRunner(t, name, setup{Store: store(t, nil), Workers: 1, QueueSize: 1})
		for range 200 {
			resp, err := r.Lookup(t.Context(), "P000001")
			if err != nil {
				t.Fatal(err)
			}
			resp.Release()
		}
		s := r.Stats()
		if name != Optimized && s.ReuseRate != -1 {
			t.Errorf("%s claims to reuse %v", name, s.ReuseRate)
		}
		// Under -race the pool drops objects on purpose: some reuse is enough.
		if name == Optimized && (s.ReuseRate <= 0 || s.ReuseRate > 1 || s.Responses != 200) {
			t.Errorf("reuse rate %v of %d", s.ReuseRate, s.Responses)
		}
		if err := r.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// An answer that grew for a hundred patients is not kept for one, and what cannot be
// cleared is not kept at all.
func TestAnswersAreReusedByTypeAndOnlyIfTheyCanBeCleared(t *testing.T) {
	r := newRunner(t, Optimized, setup{Store: store(t, nil), Workers: 1, QueueSize: 1})
	for range 50 {
		single, err := r.Lookup(t.Context(), "P000001")
		if err != nil {
			t.Fatal(err)
		}
		single.Release()
		batch, err := r.LookupBatch(t.Context(), []string{"P000001", "P000002"})
		if err != nil {
			t.Fatal(err)
		}
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
	if err := r.Drain(t.Context()); err != nil {
		t.Error(err)
	}
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
		if err := r.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		if s := answers[patientapi.Patient](r.Runner).Stats(); s.Gets != 1 || s.Puts != 0 {
			t.Errorf("%d taken, %d given back; want 1, 0", s.Gets, s.Puts)
		}
	})
}

func TestFailedLookupGivesItsResponseBack(t *testing.T) {
	r := newRunner(t, Optimized, setup{Workers: 1, QueueSize: 1, Store: store(t, nil)})
	for range 10 {
		if _, err := r.Lookup(t.Context(), "P999999"); !errors.Is(err, patientapi.ErrNotFound) {
			t.Fatal(err)
		}
	}
	if s := answers[patientapi.Patient](r.Runner).Stats(); s.Gets != 10 || s.Puts != 10 {
		t.Errorf("%d taken, %d given back", s.Gets, s.Puts)
	}
	if err := r.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestReusedResponsesShowNoOtherPatient(t *testing.T) {
	const clients, each = 50, 20
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRunner(t, name, setup{Workers: 8, QueueSize: 1000, Store: store(t, nil)})
				var wg sync.WaitGroup
				for client := range clients {
					wg.Go(func() {
						var want patientapi.Patient
						for i := range each {
							n := 1 + (client*61+i*17)%1000
							resp, err := r.Lookup(t.Context(), patientapi.FormatID(n))
							for errors.Is(err, spillway.ErrRejected) { // that is another test's matter
								time.Sleep(time.Millisecond)
								resp, err = r.Lookup(t.Context(), patientapi.FormatID(n))
							}
							if err != nil {
								t.Error(err)
								return
							}
							patientapi.Generator{Seed: 1}.Patient(n, &want)
							got, _ := json.Marshal(&resp.Value)
							resp.Release()
							if want, _ := json.Marshal(&want); string(got) != string(want) {
								t.Errorf("asked for %d\n got %s\nwant %s", n, got, want)
							}
						}
					})
				}
				wg.Wait()
				if err := r.Drain(t.Context()); err != nil {
					t.Error(err)
				}
				if s := r.Stats(); s.Completed != clients*each {
					t.Errorf("%d were looked up, want %d", s.Completed, clients*each)
				}
			})
		})
	}
}
