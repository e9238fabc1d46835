package experiment

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
)

func seconds(repeat int, uses float64, takes ...int) (out []step) {
	for _, s := range takes {
		out = append(out, step{repeat: repeat, uses: uses, expect: func() time.Duration { return time.Duration(s) * time.Second }})
	}
	return out
}

func TestWhatWaitsRunsSideBySideAndTheRestAlone(t *testing.T) {
	for name, test := range map[string]struct {
		steps []step
		want  time.Duration
	}{
		"nothing":                      {nil, 0},
		"alone":                        {seconds(0, 1, 10, 5, 5), 20 * time.Second},
		"side by side":                 {seconds(0, .5, 10, 8), 10 * time.Second},
		"as many as there is room for": {seconds(0, .5, 10, 8, 3), 11 * time.Second},
		"then alone":                   {append(seconds(0, 1, 5), seconds(0, .2, 10, 10, 10)...), 15 * time.Second},
		"repeats do not overtake":      {append(seconds(0, .9, 10), append(seconds(1, .9, 10), seconds(1, .2, 20)...)...), 40 * time.Second},
	} {
		for i := range test.steps {
			test.steps[i].batch = strconv.Itoa(i)
		}
		if got := takes(test.steps); got != test.want {
			t.Errorf("%s: takes %v, want %v", name, got, test.want)
		}
	}
}

// Whatever is to be done, each step runs once, in the order of repeats, never beside one that needs
// all processors, never with too much beside it, and as long as was said before.
func TestStepsAreDoneOnceAndWithinTheProcessors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 2))
		for range 100 {
			var mu sync.Mutex
			var all []step
			ran, busy, active := map[string]int{}, 0.0, map[string]bool{}
			var earliest, latest [3]time.Duration // of the beginnings in a repeat
			start := time.Now()
			for repeat := range 3 {
				for i := range rng.IntN(10) {
					s := seconds(repeat, []float64{1, 1, .9, .5, .3, .1}[rng.IntN(6)], 1+rng.IntN(20))[0]
					id := strconv.Itoa(len(all))
					s.batch = []string{id, strconv.Itoa(i)}[rng.IntN(2)]
					s.run = func(context.Context) (string, error) {
						mu.Lock()
						ran[id]++
						if active[s.batch] {
							t.Errorf("batch %s is measured twice at once", s.batch)
						}
						active[s.batch] = true
						if busy += s.uses; busy > 1+1e-9 {
							t.Errorf("steps use %v of the processors", busy)
						}
						now := time.Since(start) + 1
						if earliest[s.repeat] == 0 {
							earliest[s.repeat] = now
						}
						latest[s.repeat] = now
						mu.Unlock()
						time.Sleep(s.expect())
						mu.Lock()
						defer mu.Unlock()
						busy -= s.uses
						active[s.batch] = false
						return "", nil
					}
					all = append(all, s)
				}
			}
			if err := NewProgress(io.Discard, false, 0).play(t.Context(), all, func(d time.Duration) time.Duration { return d }); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(start); got != takes(all) || len(ran) != len(all) {
				t.Fatalf("%d of %d steps took %v, want %v", len(ran), len(all), got, takes(all))
			}
			for i := range 2 {
				if earliest[i+1] > 0 && latest[i] > earliest[i+1] {
					t.Errorf("a step of repeat %d begins at %v, after one of the next repeat at %v", i, latest[i], earliest[i+1])
				}
			}
			for id, n := range ran {
				if n != 1 {
					t.Fatalf("step %s ran %d times", id, n)
				}
			}
		}
	})
}

func TestAfterAnErrorNothingBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began atomic.Int32
		all := seconds(0, .5, 3, 1, 1, 1)
		for i := range all {
			all[i].run = func(context.Context) (string, error) {
				began.Add(1)
				time.Sleep(all[i].expect())
				if i == 1 {
					return "", io.ErrClosedPipe
				}
				return "", nil
			}
		}
		err := NewProgress(io.Discard, false, 0).play(t.Context(), all, func(d time.Duration) time.Duration { return d })
		if !errors.Is(err, io.ErrClosedPipe) || began.Load() != 2 {
			t.Errorf("%v, %d steps", err, began.Load())
		}
	})
}

func TestTheCheapestQuestionsAreSettledFirst(t *testing.T) {
	named := func(ids string, takes ...int) (out []step) {
		for i, s := range seconds(0, 1, takes...) {
			s.batch = ids[i : i+1]
			out = append(out, s)
		}
		return out
	}
	all := [][]step{named("abc", 20, 20, 20), named("d", 1), named("e", 10), named("de", 1, 10)} // the last shares those of two others
	for left, want := range map[time.Duration]string{0: "", time.Second: "d", 11 * time.Second: "de", 70 * time.Second: "de", 71 * time.Second: "deabc"} {
		got, chosen := "", worth(all, left)
		for _, s := range chosen {
			got += s.batch
		}
		if took := takes(chosen); got != want || took > left {
			t.Errorf("%v: %q takes %v, want %q", left, got, took, want)
		}
	}
}

// Two repeats of a load that waits for 30 s each were left out for want of 13 s, though steps of others
// could have run beside them.
func TestAQuestionCostsWhatTheSessionIsLongerByIt(t *testing.T) {
	waits, counts := seconds(0, .2, 30), seconds(0, .5, 14)
	waits[0].batch, counts[0].batch = "waits", "counts"
	if got := worth([][]step{waits, counts}, 31*time.Second); len(got) != 2 {
		t.Errorf("%d of two that fit side by side", len(got))
	}
	if got := worth([][]step{waits, counts}, 29*time.Second); len(got) != 1 || got[0].batch != "counts" {
		t.Errorf("%d of two, of which the shorter fits", len(got))
	}
}

func TestOnlyWhatMoreRepeatsSettleIsMeasuredFurther(t *testing.T) {
	answer := func(v results.Verdict, more int) results.Answer { return results.Answer{Verdict: v, MoreRuns: more} }
	open := func(more int) results.Answer { return answer(results.Inconclusive, more) }
	beside := open(4)
	beside.Beside = true
	holds, fails := answer(results.Holds, 0), answer(results.Fails, 0)
	leansTo := func(v results.Answer, more int) results.Answer {
		a := open(more)
		if a.Rule = judge.AtMost(0); v.Verdict == results.Fails {
			a.Measured = 1
		}
		return a
	}
	missing := open(3)
	missing.Measured = math.NaN()
	for _, test := range []struct {
		claim results.Claim
		want  []int // more repeats of the answers that get any
	}{
		{results.Claim{Verdict: results.Holds, Answers: []results.Answer{holds}}, nil},
		{results.Claim{Verdict: results.Fails, Answers: []results.Answer{open(3), fails}}, nil},
		{results.Claim{Verdict: results.Inconclusive, Answers: []results.Answer{open(3), holds, beside}}, []int{3}},
		{results.Claim{Verdict: results.Inconclusive, Answers: []results.Answer{open(3), open(7)}}, []int{3, 7}},
		{results.Claim{Verdict: results.Inconclusive, Answers: []results.Answer{open(3), open(0)}}, nil},
		{results.Claim{Verdict: results.Inconclusive, Any: true, Answers: []results.Answer{open(3), open(0)}}, []int{3}},
		{results.Claim{Verdict: results.Inconclusive, MoreRuns: 2, Answers: []results.Answer{open(9), holds, fails}}, []int{2}},
		{results.Claim{Verdict: results.NeedsHardware, Answers: []results.Answer{answer(results.NeedsHardware, 0), open(3)}}, nil},
		// What stays open whatever is measured, and what may fail all the same.
		{results.Claim{Verdict: results.Inconclusive, Answers: []results.Answer{open(0), leansTo(fails, 5), open(3)}}, []int{5}},
		{results.Claim{Verdict: results.Inconclusive, Answers: []results.Answer{open(0), leansTo(holds, 5)}}, nil},
		{results.Claim{Verdict: results.Inconclusive, Answers: []results.Answer{open(0), missing}}, nil},
		{results.Claim{Verdict: results.NeedsHardware, Answers: []results.Answer{answer(results.NeedsHardware, 0), leansTo(fails, 5)}}, []int{5}},
		{results.Claim{Verdict: results.Fails, Answers: []results.Answer{open(0), leansTo(fails, 5), fails}}, nil},
	} {
		var got []int
		for _, a := range lacking(test.claim) {
			got = append(got, a.MoreRuns)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%+v: %v more, want %v", test.claim, got, test.want)
		}
	}
}

// A part that has its verdict once made its claim pay for a look whenever another claim measured the
// same cells.
func TestAClaimPaysForALookOnlyIfAnOpenAnswerGrew(t *testing.T) {
	of := func(open, decided, beside int) results.Claim {
		return results.Claim{Verdict: results.Inconclusive, Answers: []results.Answer{
			{Setup: "open", Verdict: results.Inconclusive, Repeats: open}, {Setup: "decided", Verdict: results.Holds, Repeats: decided},
			{Setup: "beside", Verdict: results.Inconclusive, Beside: true, Repeats: beside},
		}}
	}
	before := of(5, 5, 5)
	for _, test := range []struct {
		now  results.Claim
		want bool
	}{{of(5, 5, 5), false}, {of(5, 9, 9), false}, {of(6, 5, 5), true}} {
		if got := grew(before, test.now); got != test.want {
			t.Errorf("%+v: grew %v", test.now, got)
		}
	}
	before.MoreRuns, before.Answers[1].Verdict = 3, results.Fails
	if !grew(before, of(5, 6, 5)) {
		t.Error("an answer that lacks repeats only among so many has more of them")
	}
}

func TestAWholeSessionRunsOnlyWhatDecides(t *testing.T) {
	key := func(pattern string) ledger.Key { return ledger.Key{Setup: "s", Load: "l", Pattern: pattern} }
	of := func(pattern string) ledger.Term { return ledger.Of(key(pattern), ledger.Extra("x", "x")) }
	e := &Experiment{Family: ledger.Family{Claims: []ledger.Claim{{ID: "A", Parts: []ledger.Part{{Cases: ledger.Only(
		ledger.Case{Value: of("decides").Over(of("together"))}, ledger.Case{Value: of("beside"), Beside: true})}}}}}}
	plan := Plan{
		Cells:  []Cell{{Setup: "s", Load: "l", Pattern: "decides"}, {Setup: "s", Load: "l", Pattern: "decides", Twin: true}, {Setup: "s", Load: "l", Pattern: "beside"}},
		Groups: []Group{{Keys: []ledger.Key{key("together"), key("in its table")}}, {Keys: []ledger.Key{key("another table")}}},
	}
	p := plan.only(e.first(plan, false))
	if goals := e.first(plan, true); len(goals) != 0 {
		t.Errorf("of goals: %v", goals)
	}
	twin := key("decides")
	twin.Twin = true
	if got := p.Keys(); !slices.Equal(got, []ledger.Key{key("together"), key("in its table"), key("decides"), twin}) {
		t.Errorf("runs %v", got)
	}
}

// H5 took 77 s of every quarter of an hour though it cannot hold without a PostgreSQL server.
func TestAClaimThatNothingCanDecideComesWithTheGoals(t *testing.T) {
	key := ledger.Key{Setup: "s", Load: "l", Pattern: "p"}
	plan := Plan{Cells: []Cell{{Setup: "s", Load: "l", Pattern: "p"}}}
	figure := ledger.Extra("x", "x")
	for name, c := range map[string]struct {
		of    ledger.Case
		any   bool
		goals int
	}{
		"measured":  {of: ledger.Case{Value: ledger.Of(key, figure)}},
		"no server": {of: ledger.Case{Value: ledger.Of(key, figure), Open: "There is no server."}, goals: 1},
		"beside":    {of: ledger.Case{Value: ledger.Of(key, figure), Open: "There is no server.", Beside: true}},
		"one of":    {of: ledger.Case{Value: ledger.Of(key, figure), Open: "There is no server."}, any: true},
	} {
		e := &Experiment{Family: ledger.Family{Claims: []ledger.Claim{{Any: c.any, Parts: []ledger.Part{{Cases: ledger.Only(c.of)}}}}}}
		if got := e.first(plan, true); len(got) != c.goals || len(e.first(plan, false)) != 1-c.goals {
			t.Errorf("%s: %d come with the goals, want %d", name, len(got), c.goals)
		}
	}
}
