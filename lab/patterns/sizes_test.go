package patterns

import (
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
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
	}{{"model", 2 * cores, 5}, {"sqlite", 3 * cores, 5}, {"postgres", 4 * cores, 5}, {"cpu", cores, 2}, {"model", 30, 0}, {"cpu", 300, 20}} {
		r := ruleFor(c.part)
		s, want := r.sized(), r.key(c.workers, c.places)
		at := slices.IndexFunc(s.points, func(p point) bool { return p.Key == want })
		if at < 0 {
			t.Errorf("%s: no %s", c.part, want)
		} else if p := s.points[at]; p.at != c.workers || p.workers != c.workers || p.queue != c.places*c.workers || p.clients != 500 {
			t.Errorf("%s: %+v", c.part, p)
		}
		seen := map[ledger.Key]bool{}
		for _, k := range experiment.Sized[Config]("").group(s, nil).Keys {
			if seen[k] {
				t.Errorf("%s twice", k)
			}
			seen[k] = true
		}
	}
}

func TestASweepChangesOneSizeOfThePublishedPool(t *testing.T) {
	for _, s := range sweeps() {
		changed := map[string]bool{}
		for _, p := range s.points {
			for name, x := range map[string][2]int{"workers": {p.workers, 20}, "queue places": {p.queue, 100}, "clients": {p.clients, 500}} {
				changed[name] = changed[name] || x[0] != x[1]
			}
		}
		for name, is := range changed {
			if is != (name == s.axis) {
				t.Errorf("%s changes %v", s.setup, changed)
			}
		}
	}
	quiet, loud := experiment.Sized[Config](""), experiment.Sized[Config]("")
	loud.Sweep = true
	if len(quiet.series()) != 4 || len(loud.series()) != 7 || len(onPostgres("").series()) != 5 {
		t.Errorf("%d, %d and %d", len(quiet.series()), len(loud.series()), len(onPostgres("").series()))
	}
	quiet.Contestant = []string{Naive}
	if got := quiet.series(); got != nil {
		t.Errorf("without pools: %v", got)
	}
}

// In virtual time nothing but the store and the waits takes time: over a store that bears
// any number, every worker adds as much as the one before.
func TestOverAStoreThatOnlyWaitsEveryWorkerCounts(t *testing.T) {
	c := experiment.Sized[Config]("")
	s := boundless.sized()
	in := Sizing{AtOnce: true}
	for _, p := range s.points {
		in.Jobs = append(in.Jobs, s.job(c, p, 1))
	}
	synctest.Test(t, func(t *testing.T) {
		runs, err := SimulatedPools(t.Context(), in)
		if err != nil || len(runs) != len(s.points) {
			t.Fatal(len(runs), err)
		}
		for i, run := range runs {
			law := float64(min(s.points[i].workers, someClients)) * .95 / .075
			if got := run.Rate("ok"); got < .9*law || got > 1.05*law {
				t.Errorf("%s: %.0f a second, Little's law says %.0f", s.points[i].Load, got, law)
			}
		}
	})
}

// The model has 100 slots for 75 ms: with fewer workers every one counts, with more all
// together do less.
func TestOverTheModelTheSlotsDecide(t *testing.T) {
	c := experiment.Sized[Config]("")
	c.SizeTime /= 2
	s := ruleFor("model").sized()
	var in Sizing
	for _, p := range s.points {
		in.Jobs = append(in.Jobs, s.job(c, p, 1))
	}
	in.AtOnce = true
	synctest.Test(t, func(t *testing.T) {
		runs, err := SimulatedPools(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for i, run := range runs {
			p := s.points[i]
			can := float64(p.workers) / .075
			if p.workers > MaxConnections {
				can = MaxConnections / .075 / math.Sqrt(float64(p.workers)/MaxConnections)
			}
			if got := run.Rate("ok"); p.queue > 0 && (got < .8*can || got > 1.1*can) {
				t.Errorf("%d workers, queue %d: %.0f a second, the model does %.0f", p.workers, p.queue, got, can)
			}
		}
	})
}

func TestPoolsInTurnsComeBackInTheirOrder(t *testing.T) {
	c := experiment.Sized[Config]("")
	s := ruleFor("cpu").sized()
	in := Sizing{Seed: 3}
	for _, p := range s.points {
		p.clients = 5
		j := s.job(c, p, 1)
		if j.Time = time.Millisecond; j.Compute != 200*time.Microsecond {
			t.Errorf("a look-up computes %v", j.Compute)
		}
		in.Jobs = append(in.Jobs, j)
	}
	runs, err := SimulatedPools(t.Context(), in)
	if err != nil || len(runs) != len(s.points) {
		t.Fatal(len(runs), err)
	}
	for i, run := range runs {
		if run.Params["workers"] != float64(s.points[i].workers) {
			t.Errorf("run %d is of %v workers, want %d", i, run.Params["workers"], s.points[i].workers)
		}
	}
}

// goodputs are runs in which pools of several sizes over a store have that goodput, with the
// rule's queue.
func goodputs(r rule, cores int, of map[int]uint64) (runs []results.Run) {
	for repeat := range judge.MinRepeats {
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
	for repeat := range judge.MinRepeats {
		k := r.key(30, 20)
		runs = append(runs, results.Run{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Repeat: repeat, Elapsed: 1, Offered: 200, Outcomes: []results.Outcome{{Kind: "ok", Count: 200}}})
	}
	part := ledger.Part{Subject: "x", Unit: "x", Rule: judge.AtLeast(.9), Spread: .03, Cases: r.best}
	got := (&ledger.Family{Claims: []ledger.Claim{{Parts: []ledger.Part{part}}}}).Judge(ledger.NewEvidence(runs, 1))[0].Answers[0]
	if got.Verdict != results.Fails || got.Measured != .5 {
		t.Errorf("%s, %v", got.Verdict, got.Measured)
	}
}

func TestWithoutAServerPostgreSQLIsOpen(t *testing.T) {
	for _, a := range claimsOf(made(experiment.Sized[Config]("full")))["H5"].Answers {
		if open := strings.Contains(a.Why, "name a server with --postgres"); open != (a.Part == "postgres" && !a.Beside) {
			t.Errorf("%s, %s: %s", a.Part, a.Setup, a.Why)
		}
	}
}
