package export

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/memory"
)

func TestAnExportHasEverythingOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, q := newStore(t, nil), newQueue(t, memory.Config{})
		e := newExports(t, q, store, t.TempDir())
		ticket := begin(t, e, Request{URL: "/$export"})
		if s := status(t, e, ticket); s.State != Accepted || s.Files != nil || s.URL != "/$export" {
			t.Errorf("%+v", s)
		}
		only := begin(t, e, Request{Types: []access.Resource{access.MedicationRequests}})
		defer run(e)()
		synctest.Wait()
		whole(t, e, ticket, store)
		whole(t, e, only, store)
		if s := status(t, e, ticket); len(s.Files) != 15 || !s.Expires.Equal(s.Changed.Add(24*time.Hour)) {
			t.Errorf("%+v", s)
		}
		for _, name := range []string{"", "Patient", "Patient-1.ndjson", "Patient-000006.ndjson", "Patient-000000.ndjson", "../request.json", "Clinician-000001.ndjson", "Patient-000001.ndjson/"} {
			if _, err := e.Open(ticket, name); !errors.Is(err, ErrNotFound) {
				t.Errorf("%q: %v", name, err)
			}
		}
	})
}

// Each process does a little and stops; one of them leaves what a killed one does.
func TestAnExportGoesOnInTheNextProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context, _ int64) error { return sleep(ctx, time.Second/10) }
		store, q, dir := newStore(t, slow), newQueue(t, memory.Config{}), t.TempDir()
		e := newExports(t, q, store, dir)
		ticket := begin(t, e, Request{})
		lives := 0
		for before := 0; status(t, e, ticket).State != Complete; lives++ {
			e = newExports(t, q, store, dir)
			stop := run(e)
			time.Sleep(2 * time.Second)
			stop()
			if _, err := e.disk.begin(ticket); err != nil {
				t.Fatal(err)
			}
			if now := status(t, e, ticket).Patients; now < before || lives > 20 {
				t.Fatalf("life %d: %d patients, there were %d", lives, now, before)
			}
			before = status(t, e, ticket).Patients
		}
		e.disk.clean(ticket, unfinished) // that of the last life
		whole(t, e, ticket, store)
		if lives < 3 {
			t.Errorf("only %d lives", lives)
		}
	})
}

// Several workers have the same job at the same time, each of a process that the queue has
// taken for dead, and is not.
func TestManyWorkersDoAnExportOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(_ context.Context, call int64) error {
			time.Sleep(time.Duration(call*call%7) * time.Second)
			return nil
		}
		store, q, dir := newStore(t, slow), newQueue(t, memory.Config{}), t.TempDir()
		first := newExports(t, q, store, dir)
		ticket := begin(t, first, Request{})
		var all sync.WaitGroup
		var taken atomic.Int64
		for range 5 {
			e := newExports(t, q, store, dir)
			all.Go(func() {
				for attempt := 1; ; attempt++ {
					err := e.do(t.Context(), &jobqueue.Delivery{Job: jobqueue.Job{Payload: []byte(ticket)}, Attempt: attempt, Progress: func(context.Context) error { return nil }})
					if err == nil {
						return
					}
					if taken.Add(1); !errors.Is(err, errTaken) {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		whole(t, first, ticket, store)
		if taken.Load() == 0 {
			t.Error("they did not meet")
		}
	})
}

func TestARejectionCountsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		advice := 7 * time.Second
		shed := func(_ context.Context, call int64) error {
			if call < 10*tries || call > 200 && call < 200+20*tries {
				return &spillway.Rejection{Reason: spillway.ReasonWaitTooLong, RetryAfter: advice}
			}
			return nil
		}
		store, q := newStore(t, shed), newQueue(t, memory.Config{})
		e := newExports(t, q, store, t.TempDir())
		ticket, start := begin(t, e, Request{}), time.Now()
		stop := run(e)
		for status(t, e, ticket).State != Complete {
			time.Sleep(time.Second)
		}
		stop()
		whole(t, e, ticket, store)
		s, err := q.Stats(context.Background())
		if err != nil || s.Deferred < 10 || s.Retried != 0 || time.Since(start) < 10*tries*advice {
			t.Errorf("after %v: %+v, %v", time.Since(start), s, err)
		}
	})
}

func TestAnExportIsCancelledWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context, _ int64) error { return sleep(ctx, time.Second) }
		store, q, dir := newStore(t, slow), newQueue(t, memory.Config{}), t.TempDir()
		e := newExports(t, q, store, dir)
		ticket := begin(t, e, Request{})
		defer run(e)()
		time.Sleep(30 * time.Second)
		if s := status(t, e, ticket); s.State != Running || s.Patients == 0 {
			t.Errorf("%+v", s)
		}
		require.NoError(t, e.Cancel(ticket))
		time.Sleep(2 * heartbeat)
		calls := store.calls.Load()
		time.Sleep(time.Minute)
		if now := store.calls.Load(); now != calls {
			t.Errorf("%d questions to the store after the end", now-calls)
		}
		if s, err := q.Stats(t.Context()); err != nil || s.Done != 1 || s.Dead+s.Delayed+s.InFlight > 0 {
			t.Errorf("%+v, %v", s, err)
		}
		if err := e.Cancel(ticket); !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// A queue that was lost, as one in memory is with its process, is filled again.
func TestAnExportWithoutAJobGetsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, dir := newStore(t, nil), t.TempDir()
		ticket := begin(t, newExports(t, newQueue(t, memory.Config{}), store, dir), Request{})
		e := newExports(t, newQueue(t, memory.Config{}), store, dir)
		defer run(e)()
		synctest.Wait()
		whole(t, e, ticket, store)
	})
}

// An export whose process was killed before it had a job gets one, though others had jobs
// when the next process began.
func TestAnExportWithoutAJobGetsOneOnceTheOthersAreDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, nil)
		e := newExports(t, newQueue(t, memory.Config{}), store, t.TempDir())
		begin(t, e, Request{Types: Types})
		forgotten := access.NewTicket("export-job")
		require.NoError(t, e.disk.add(forgotten, Request{Types: Types, Started: time.Now()}))
		defer run(e)()
		time.Sleep(longestSweep + time.Minute)
		whole(t, e, forgotten, store)
	})
}

func TestSinceLeavesOutWhatHasNotChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, q := newStore(t, nil), newQueue(t, memory.Config{})
		e := newExports(t, q, store, t.TempDir())
		since := time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)
		all := begin(t, e, Request{Since: since})
		some := begin(t, e, Request{Since: since, Types: []access.Resource{access.Patients, access.MedicationRequests}})
		defer run(e)()
		synctest.Wait()
		want := map[access.Resource]int{}
		var page patientapi.Page
		require.NoError(t, store.base.Search(t.Context(), patientapi.PatientSearch{}, &page))
		for _, p := range page.Patients {
			observations, _ := store.base.Observations(t.Context(), p.ID)
			for _, o := range observations {
				if !o.Updated.Before(since) {
					want[access.Observations]++
				}
			}
			if !p.Updated.Before(since) {
				want[access.Patients]++
				want[access.MedicationRequests] += len(p.Medications)
			}
		}
		for _, ticket := range []string{all, some} {
			s, got := status(t, e, ticket), map[access.Resource]int{}
			for _, f := range s.Files {
				got[f.Type] += f.Count
			}
			for _, kind := range s.Types {
				if s.State != Complete || got[kind] != want[kind] || want[kind] == 0 {
					t.Errorf("%s: %d %s, want %d", s.State, got[kind], kind, want[kind])
				}
			}
		}
	})
}
