package experiment

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

func seconds(part, stage, repeat int, uses float64, takes ...int) (out []errand) {
	for _, s := range takes {
		out = append(out, errand{part: part, stage: stage, repeat: repeat, uses: uses, expect: time.Duration(s) * time.Second, do: new(step)})
	}
	return out
}

func TestWhatWaitsRunsSideBySideAndTheRestAlone(t *testing.T) {
	for name, test := range map[string]struct {
		errands []errand
		want    time.Duration
	}{
		"nothing":                      {nil, 0},
		"alone":                        {seconds(0, 1, 0, 1, 10, 5, 5), 20 * time.Second},
		"side by side":                 {seconds(0, 0, 0, .5, 10, 8), 10 * time.Second},
		"as many as there is room for": {seconds(0, 0, 0, .5, 10, 8, 3), 11 * time.Second},
		"then alone":                   {append(seconds(0, 0, 0, 1, 5), seconds(1, 0, 0, .2, 10, 10, 10)...), 15 * time.Second},
		"two stages":                   {append(seconds(0, 1, 0, 1, 5), seconds(1, 0, 0, .5, 10)...), 15 * time.Second},
		"repeats do not overtake":      {append(seconds(0, 0, 1, .9, 10), append(seconds(0, 0, 0, .9, 10), seconds(1, 0, 1, .2, 20)...)...), 40 * time.Second},
	} {
		if got := newAgenda(test.errands).takes(); got != test.want {
			t.Errorf("%s: takes %v, want %v", name, got, test.want)
		}
	}
}

// Whatever is on an agenda, each errand runs once, in order of stages and repeats, never
// beside one that needs all processors, and never with too much beside it.
func TestAnAgendaIsWorkedOffOnceAndWithinTheProcessors(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var all []errand
		for range rng.IntN(40) {
			uses := []float64{1, 1, .9, .5, .3, .1}[rng.IntN(6)]
			all = append(all, seconds(rng.IntN(4), rng.IntN(3), rng.IntN(3), uses, 1+rng.IntN(20))...)
		}
		a := newAgenda(all)
		if expect := a.takes(); expect > sum(all) || len(all) > 0 && expect <= 0 {
			t.Fatalf("%v for %v of work", expect, sum(all))
		}
		var done, running []errand
		for {
			e, ok := a.next(running)
			if !ok && len(running) == 0 {
				break
			}
			if !ok { // one of them ends
				i := rng.IntN(len(running))
				running = slices.Delete(running, i, i+1)
				continue
			}
			done, running = append(done, e), append(running, e)
			busy := 0.0
			for _, r := range running {
				busy += r.uses
			}
			if busy > 1+1e-9 {
				t.Fatalf("%d errands use %v", len(running), busy)
			}
			if n := len(done); n > 1 && (done[n-2].stage > e.stage || done[n-2].stage == e.stage && done[n-2].repeat > e.repeat) {
				t.Fatalf("%+v after %+v", e, done[n-2])
			}
		}
		for _, e := range all {
			if n := len(slices.DeleteFunc(slices.Clone(done), func(o errand) bool { return o.do != e.do })); n != 1 {
				t.Fatalf("%+v ran %d times", e, n)
			}
		}
	}
}

func sum(all []errand) (d time.Duration) {
	for _, e := range all {
		d += e.expect
	}
	return d
}

func TestThereIsTimeForTheMostImportantThatFit(t *testing.T) {
	all := slices.Concat(seconds(0, 1, 0, 1, 10), seconds(1, 2, 0, 1, 30), seconds(2, 3, 0, 1, 10), seconds(3, 4, 0, 1, 1))
	none := func(int) bool { return false }
	parts := func(kept []errand) (out []int) {
		for _, e := range kept {
			out = append(out, e.part)
		}
		return out
	}
	for _, test := range []struct {
		begun func(int) bool
		left  time.Duration
		kept  []int
		out   map[int]time.Duration
	}{
		{none, time.Minute, []int{0, 1, 2, 3}, map[int]time.Duration{}},
		{none, 20 * time.Second, []int{0, 2}, map[int]time.Duration{1: 30 * time.Second, 3: time.Second}},
		{none, 0, nil, map[int]time.Duration{0: 10 * time.Second, 1: 30 * time.Second, 2: 10 * time.Second, 3: time.Second}},
		{func(p int) bool { return p == 1 }, time.Second, []int{1}, map[int]time.Duration{0: 10 * time.Second, 2: 10 * time.Second, 3: time.Second}},
	} {
		kept, out := affordable(all, test.begun, test.left)
		if !slices.Equal(parts(kept), test.kept) || !reflect.DeepEqual(out, test.out) {
			t.Errorf("%v: %v and without %v, want %v and %v", test.left, parts(kept), out, test.kept, test.out)
		}
	}
}

func TestTheCheapestQuestionsAreSettledFirst(t *testing.T) {
	all := []want{{claim: "dear", costs: time.Minute}, {claim: "cheap", costs: time.Second}, {claim: "fair", costs: 10 * time.Second}}
	for left, want := range map[time.Duration]string{0: "", time.Second: "cheap", 11 * time.Second: "cheap fair", 70 * time.Second: "cheap fair", 71 * time.Second: "cheap fair dear"} {
		got := ""
		for i, w := range worth(all, left) {
			if i > 0 {
				got += " "
			}
			got += w.claim
		}
		if got != want {
			t.Errorf("%v: %q, want %q", left, got, want)
		}
	}
}

func TestOnlyWhatMoreRepeatsSettleIsMeasuredFurther(t *testing.T) {
	open := func(more int) results.Answer {
		return results.Answer{Verdict: results.Inconclusive, MoreRuns: more}
	}
	beside := open(0)
	beside.Beside = true
	holds := results.Answer{Verdict: results.Holds}
	for _, test := range []struct {
		verdict results.Verdict
		answers []results.Answer
		want    int
	}{
		{results.Holds, []results.Answer{holds}, 0},
		{results.Fails, []results.Answer{open(3), {Verdict: results.Fails}}, 0},
		{results.Inconclusive, []results.Answer{open(3), holds, beside}, 3},
		{results.Inconclusive, []results.Answer{open(3), open(7)}, 7},
		{results.Inconclusive, []results.Answer{open(3), open(0)}, 0},
		{results.NeedsHardware, []results.Answer{open(3)}, 0},
	} {
		if got := settles(results.Claim{Verdict: test.verdict, Answers: test.answers}); got != test.want {
			t.Errorf("%+v: %d more, want %d", test, got, test.want)
		}
	}
}

func TestAWholeSessionRunsOnlyWhatDecides(t *testing.T) {
	key := func(pattern string) ledger.Key { return ledger.Key{Setup: "s", Load: "l", Pattern: pattern} }
	of := func(pattern string) ledger.Term { return ledger.Of(key(pattern), ledger.Extra("x", "x")) }
	e := &Experiment{Family: ledger.Family{Claims: []ledger.Claim{{ID: "A", Parts: []ledger.Part{{Cases: ledger.Only(
		ledger.Case{Value: of("decides").Over(of("together"))}, ledger.Case{Value: of("beside"), Beside: true})}}}}}}
	p := e.deciding(Plan{
		Cells:  []Cell{{Setup: "s", Load: "l", Pattern: "decides"}, {Setup: "s", Load: "l", Pattern: "decides", Twin: true}, {Setup: "s", Load: "l", Pattern: "beside"}},
		Groups: []Group{{Keys: []ledger.Key{key("together"), key("in its table")}}, {Keys: []ledger.Key{key("another table")}}},
		Demos:  []Demo{{ID: "d"}},
	})
	twin := key("decides")
	twin.Twin = true
	if got := p.Keys(); !slices.Equal(got, []ledger.Key{key("together"), key("in its table"), key("decides"), twin}) || len(p.Demos) != 1 {
		t.Errorf("runs %v", got)
	}
}
