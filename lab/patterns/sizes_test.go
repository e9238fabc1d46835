package patterns

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
)

// ruleFor is the rule of a part of H5.
func ruleFor(part string) rule {
	return rules[slices.IndexFunc(rules, func(r rule) bool { return r.part == part })]
}

func TestTheRulesSizesAreMeasuredWithTheirQueues(t *testing.T) {
	cores := runtime.GOMAXPROCS(0)
	for _, c := range []struct {
		part            string
		workers, places int // of each worker
	}{{"sqlite", 3 * cores, 5}, {"postgres", 4 * cores, 5}, {"cpu", cores, 2}, {"sqlite", 4 * cores, 0}, {"cpu", cores, 20}, {"cpu", 100, 2}} {
		r := ruleFor(c.part)
		seen := map[ledger.Key]bool{}
		for _, p := range r.pools() {
			if seen[p.Key] {
				t.Errorf("%s twice", p.Key)
			}
			seen[p.Key] = true
			if j := experiment.Sized[Config]("").sized(r, p, 1); j.Workers != p.workers || j.QueueSize != p.places*p.workers || j.Clients != 500 {
				t.Errorf("%s: %+v", p.Key, j)
			}
		}
		if want := r.key(c.workers, c.places); !seen[want] {
			t.Errorf("%s: no %s", c.part, want)
		}
	}
}

func TestPoolsInTurnsComeBackInTheirOrder(t *testing.T) {
	c, r, in := experiment.Sized[Config](""), ruleFor("cpu"), Sizing{Seed: 3}
	for _, p := range r.pools() {
		j := c.sized(r, p, 1)
		j.Clients, j.Time = 5, time.Millisecond
		in.Jobs = append(in.Jobs, j)
	}
	runs, err := Pools(t.Context(), in, nil)
	if err != nil || len(runs) != len(in.Jobs) {
		t.Fatal(len(runs), err)
	}
	for i, run := range runs {
		if run.Params["workers"] != float64(in.Jobs[i].Workers) {
			t.Errorf("run %d is of %v workers, want %d", i, run.Params["workers"], in.Jobs[i].Workers)
		}
	}
}

// goodputs are runs in which pools of several sizes over a store have that goodput, with the
// rule's queue.
func goodputs(r rule, cores int, of map[int]uint64) (runs []results.Run) {
	for repeat := range judge.LeastFollow {
		for workers, good := range of {
			k := r.key(workers, r.queue)
			runs = append(runs, results.Run{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Repeat: repeat, Elapsed: 1, Offered: good,
				Outcomes: []results.Outcome{{Kind: "ok", Count: good}}, Params: map[string]any{"gomaxprocs": cores}})
		}
	}
	return runs
}

func TestH5ComparesTheBetterOfTheRulesSizesWithTheBest(t *testing.T) {
	r := ruleFor("sqlite")
	for _, c := range []struct {
		cores   int
		good    map[int]uint64
		verdict results.Verdict
		beside  results.Verdict
	}{
		{2, map[int]uint64{4: 50, 6: 98, 8: 60, 30: 100, 500: 10}, results.Holds, results.Holds},
		{2, map[int]uint64{4: 4, 6: 6, 8: 8, 30: 30, 500: 500}, results.Fails, results.Fails},
		{8, map[int]uint64{16: 50, 24: 80, 32: 96, 30: 80, 500: 100}, results.Holds, results.Fails},
		{8, map[int]uint64{16: 100, 24: 100, 30: 100, 500: 100}, results.Inconclusive, results.Inconclusive}, // 32 was not run
	} {
		e := ledger.NewEvidence(goodputs(r, c.cores, c.good), 1)
		f := ledger.Family{Claims: []ledger.Claim{{Parts: []ledger.Part{{Subject: "x", Unit: "x", Rule: judge.AtLeast(.9), Spread: .03, Cases: r.best}}}}}
		got := f.Judge(e)[0].Answers
		if got[0].Verdict != c.verdict || got[1].Verdict != c.beside || got[0].Beside || !got[1].Beside {
			t.Errorf("%d cores, %v: %s and %s: %s", c.cores, c.good, got[0].Verdict, got[1].Verdict, got[0].Why)
		}
	}
}

func TestAnotherQueueMayBeTheBest(t *testing.T) {
	r := ruleFor("sqlite")
	runs := goodputs(r, 2, map[int]uint64{4: 100, 6: 100, 8: 100, 30: 90})
	for repeat := range judge.LeastFollow {
		k := r.key(30, 20)
		runs = append(runs, results.Run{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Repeat: repeat, Elapsed: 1, Offered: 200, Outcomes: []results.Outcome{{Kind: "ok", Count: 200}}})
	}
	part := ledger.Part{Subject: "x", Unit: "x", Rule: judge.AtLeast(.9), Spread: .03, Cases: r.best}
	got := (&ledger.Family{Claims: []ledger.Claim{{Parts: []ledger.Part{part}}}}).Judge(ledger.NewEvidence(runs, 1))[0].Answers[0]
	if got.Verdict != results.Fails || got.Measured != .5 {
		t.Errorf("%s, %v", got.Verdict, got.Measured)
	}
}
