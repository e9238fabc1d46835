package patterns

import (
	"cmp"
	"context"
	"math"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/loadgen"
)

// publishedJob is the published set-up under a load, at full size.
func publishedJob(t *testing.T, load, pattern string) job {
	t.Helper()
	c, err := Defaults().check()
	if err != nil {
		t.Fatal(err)
	}
	return c.job(c.load(load, Shape, pattern), pattern, trialOf(1))
}

// Virtual time is a machine on which nothing but the store and the waits takes time: the
// published figures follow from the sizes alone.
func TestThePublishedFiguresFollowFromTheSizes(t *testing.T) {
	for _, c := range []struct {
		load, pattern         string
		refusedLow, refusedTo float64 // share
		fewest, most          float64 // answers a second
	}{
		{Low, specimen.Naive, 0, 0, 1_000, 1_250},
		{Low, specimen.WorkerPool, 0, 0, 250, 275},
		{High, specimen.Naive, 0, 0, 10_000, 12_500},
		{High, specimen.WorkerPool, 0.87, 0.895, 2_000, 2_500},
		{High, specimen.Optimized, 0.87, 0.895, 2_000, 2_500},
		{Sustained, specimen.WorkerPool, 0.82, 0.86, 1_450, 1_750},
	} {
		synctest.Test(t, func(t *testing.T) {
			j := publishedJob(t, c.load, c.pattern)
			run, err := published(t.Context(), j)
			if err != nil {
				t.Fatal(err)
			}
			answers, refused := run.Extra["throughput"], run.Extra["refused_share"]
			if answers < c.fewest || answers > c.most || refused < c.refusedLow || refused > c.refusedTo {
				t.Errorf("%s, %s: %.0f answers a second, %.2f %% refused", c.load, c.pattern, answers, 100*refused)
			}
			if shortest := run.Of("rejected").Latency.Min(); refused > 0 && shortest != int64(j.QueueWait) {
				t.Errorf("%s, %s: refused after %v", c.load, c.pattern, time.Duration(shortest))
			}
			if c.pattern != specimen.Naive {
				if law := littlesLaw(run); run.Extra["goodput"] > 1.03*law || run.Process.PeakStoreCalls != j.Workers {
					t.Errorf("%s, %s: %.0f successes a second from %d look-ups at once, Little's law allows %.0f",
						c.load, c.pattern, run.Extra["goodput"], run.Process.PeakStoreCalls, law)
				}
			}
			if math.Abs(run.Extra["error_share"]-refused-run.Share("error")) > 1e-9 || int(run.Offered) != j.Requests {
				t.Errorf("%s, %s: refusals and failures of the store are the source's errors: %v", c.load, c.pattern, run.Extra)
			}
		})
	}
}

func TestReuseIsThatAfterTheWarmUp(t *testing.T) {
	for pattern, enough := range map[string]func(trueRate, reported float64) bool{
		specimen.Optimized: func(trueRate, reported float64) bool { return trueRate < 0.08 && reported > 0.5 && reported < 0.53 },
		Warm:               func(trueRate, _ float64) bool { return trueRate > 0.6 }, // under -race sync.Pool drops one object in four
	} {
		synctest.Test(t, func(t *testing.T) {
			run, err := published(t.Context(), publishedJob(t, Low, pattern))
			if err != nil {
				t.Fatal(err)
			}
			if !enough(run.Extra["reuse_true"], run.Extra["reuse_reported"]) || run.Process.ReuseRate != run.Extra["reuse_true"] {
				t.Errorf("%s: %v", pattern, run.Extra)
			}
			if run.Offered != 1_000 {
				t.Errorf("%s: %d requests counted, want those after the warm-up", pattern, run.Offered)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		run, err := published(t.Context(), publishedJob(t, Low, specimen.WorkerPool))
		if _, ok := run.Extra["reuse_true"]; ok || run.Process.ReuseRate != -1 || err != nil {
			t.Errorf("a pool without reuse: %v, %v", run.Extra, err)
		}
	})
}

// A shared counter in its place would give a slow client's requests to the fast ones.
func TestEachClientHasAQuotaOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := job{Requests: 1_000, Clients: 100}
		var slow atomic.Uint64
		_, err := j.sendLoad(t.Context(), func(_ context.Context, n uint64) loadgen.Outcome {
			if n%100 == 0 {
				slow.Add(1)
				time.Sleep(time.Second)
			}
			return loadgen.OK
		})
		if err != nil || slow.Load() != 10 {
			t.Errorf("the slow client sent %d requests of its 10, %v", slow.Load(), err)
		}
	})
}

func TestRefusalsCountAsAnswersAndAsErrorsAsTheSourceCountsThem(t *testing.T) {
	r := run(cell{Shape, High, specimen.WorkerPool}, 0, 1_000, 8_800, 200, 4)
	want := map[string]float64{"throughput": 2_500, "goodput": 250, "error_share": 0.9, "refused_share": 0.88, "mean_ms": 75, "max_ms": 75}
	got := asCounted(r)
	for name, x := range want {
		if math.Abs(got[name]-x) > 1e-9 {
			t.Errorf("%s %v, want %v", name, got[name], x)
		}
	}
}

func TestThePublishedShapeIsPlannedAtFullSizeSideBySide(t *testing.T) {
	plan, err := Experiment{Defaults()}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	beside := map[string][]string{}
	for _, c := range plan.Cells {
		if c.Setup == Shape {
			group := cmp.Or(c.Beside, c.Load+" alone")
			beside[group] = append(beside[group], c.Pattern)
		}
	}
	pools := []string{specimen.WorkerPool, specimen.Optimized, Warm}
	want := map[string][]string{
		"low alone": {specimen.Naive}, "high alone": {specimen.Naive},
		"published shape, low": pools, "published shape, high": pools,
		"published shape, sustained": append([]string{specimen.Naive}, pools...),
	}
	if !reflect.DeepEqual(beside, want) {
		t.Errorf("side by side: %v", beside)
	}
	if l := (Config{}).load(Sustained, Shape, specimen.WorkerPool); l.requests != 50_000 || l.clients != 500 {
		t.Errorf("%+v", l)
	}
}

func TestThePublishedShapeIsAContestant(t *testing.T) {
	c := Defaults()
	c.Requests, c.Clients, c.MinLatency, c.MaxLatency, c.Patterns = 40, 4, 0, time.Millisecond, []string{specimen.Optimized}
	plan, err := Experiment{c}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	var run results.Run
	for _, planned := range plan.Cells {
		if planned.Setup == Shape && planned.Load == Low && planned.Pattern == Warm {
			if run, err = planned.Run(t.Context(), trialOf(1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if run.Offered != 40 || run.Extra["throughput"] <= 0 || run.Process.Mallocs == 0 {
		t.Errorf("%+v", run)
	}
}
