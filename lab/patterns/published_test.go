package patterns

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/usage"
)

// publishedJob is the published set-up under a load, at full size.
func publishedJob(load, pattern string) Job {
	return experiment.Sized[Config]("").job(ledger.Key{Setup: Shape, Load: load, Pattern: pattern}, 1)
}

// inVirtualTime is the result of f on a machine on which nothing but waits takes time.
func inVirtualTime[T any](t *testing.T, f func(context.Context) (T, error)) (got T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		if got, err = f(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return got
}

// Virtual time is a machine on which nothing but the store and the waits takes time: the
// published figures follow from the sizes alone.
func TestThePublishedFiguresFollowFromTheSizes(t *testing.T) {
	for _, c := range []struct {
		load, pattern         string
		refusedLow, refusedTo float64 // share
		fewest, most          float64 // answers a second
	}{
		{Low, Naive, 0, 0, 1_000, 1_250},
		{Low, WorkerPool, 0, 0, 250, 275},
		{High, Naive, 0, 0, 10_000, 12_500},
		{High, WorkerPool, 0.87, 0.895, 2_000, 2_500},
		{High, Optimized, 0.87, 0.895, 2_000, 2_500},
		{Sustained, WorkerPool, 0.82, 0.86, 1_450, 1_750},
	} {
		synctest.Test(t, func(t *testing.T) {
			j := publishedJob(c.load, c.pattern)
			run, err := published(t.Context(), j)
			if err != nil {
				t.Fatal(err)
			}
			all, refused := answers(&run), run.Share("rejected")
			if all < c.fewest || all > c.most || refused < c.refusedLow || refused > c.refusedTo {
				t.Errorf("%s, %s: %.0f answers a second, %.2f %% refused", c.load, c.pattern, all, 100*refused)
			}
			if shortest := run.Of("rejected").Latency.Min(); refused > 0 && shortest != int64(j.QueueWait) {
				t.Errorf("%s, %s: refused after %v", c.load, c.pattern, time.Duration(shortest))
			}
			if c.pattern != Naive {
				if law := lawOf(run); run.Rate("ok") > 1.03*law || run.Extra["connections"] != float64(j.Workers) {
					t.Errorf("%s, %s: %.0f successes a second from %v look-ups at once, Little's law allows %.0f",
						c.load, c.pattern, run.Rate("ok"), run.Extra["connections"], law)
				}
			}
			if int(run.Offered) != j.Requests {
				t.Errorf("%s, %s: %d requests, want %d", c.load, c.pattern, run.Offered, j.Requests)
			}
		})
	}
}

func TestThePublishedCounterReportsHalfWhateverIsReused(t *testing.T) {
	for pattern, enough := range map[string]func(trueRate, reported float64) bool{
		Optimized: func(trueRate, reported float64) bool { return trueRate < 0.08 && reported > 0.5 && reported < 0.53 },
		Warm:      func(trueRate, _ float64) bool { return trueRate > 0.6 }, // under -race sync.Pool drops one object in four
	} {
		synctest.Test(t, func(t *testing.T) {
			run, err := published(t.Context(), publishedJob(Low, pattern))
			if err != nil {
				t.Fatal(err)
			}
			if !enough(run.Extra["reuse_true"], run.Extra["reuse_reported"]) {
				t.Errorf("%s: %v", pattern, run.Extra)
			}
			if run.Offered != 1_000 {
				t.Errorf("%s: %d requests counted, want those after the warm-up", pattern, run.Offered)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		run, err := published(t.Context(), publishedJob(Low, WorkerPool))
		if _, ok := run.Extra["reuse_true"]; ok || run.Process.ReuseRate != -1 || err != nil {
			t.Errorf("a pool without reuse: %v, %v", run.Extra, err)
		}
	})
}

// A shared counter in its place would give a slow client's requests to the fast ones.
func TestEachClientHasAQuotaOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := Job{Pattern: Naive, Config: Config{Requests: 1_000, Clients: 100, Patients: 100}}
		var slow atomic.Uint64
		_, err := j.over(t.Context(), finder(func(id string) (*specimen.Patient, error) {
			if id == j.ID(0) {
				slow.Add(1)
				time.Sleep(time.Second)
			}
			return specimen.Made(id), nil
		}))
		if err != nil || slow.Load() != 10 {
			t.Errorf("the slow client sent %d requests of its 10, %v", slow.Load(), err)
		}
	})
}

func TestRefusalsAndErrorsCountAsAnswersAsTheSourceCountsThem(t *testing.T) {
	run := results.Run{Elapsed: 4, Offered: 10_000, Outcomes: []results.Outcome{{Kind: "ok", Count: 1_000}, {Kind: "rejected", Count: 8_800}, {Kind: "error", Count: 200}}}
	if got := throughput.Value(&run); got != 2_500 {
		t.Errorf("%v a second, want 2,500", got)
	}
}

func TestUnclearedReuseShowsForeignDataAndClearedNone(t *testing.T) {
	for pattern, leaks := range map[string]bool{Uncleared: true, Warm: false} {
		run, err := published(t.Context(), Job{Load: Reuse, Pattern: pattern, Seed: 3, Config: Config{Requests: 4_000, Clients: 50, Workers: 20, QueueSize: 100, QueueWait: time.Minute, Patients: 1000}})
		if err != nil {
			t.Fatal(err)
		}
		if got := run.Extra["foreign"]; (got > 0) != leaks && !(leaks && usage.Race) || run.Of("ok").Count != 4_000 {
			t.Errorf("%s: %v foreign answers of %d", pattern, got, run.Of("ok").Count)
		}
	}
}
