package experiment_test

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
)

// stage is made-up experiments that take virtual time, and what ran in them.
type stage struct {
	mu           sync.Mutex
	runs         map[string]int // of each cell
	order        []string       // of the cells
	takes        time.Duration  // of a cell; 0: the second that is expected
	active, most int            // at one time
}

// plays has a claim for each cell: its x is at most 1. A cell takes a second. A cell whose name
// begins with P has a published claim, and any other a goal. A figure that is called noisy moves between
// sessions.
func (s *stage) plays(id string, uses float64, cells map[string]func(repeat int) float64) *experiment.Experiment {
	family := ledger.Family{ID: id, Title: "made up"}
	var plan experiment.Plan
	for _, name := range slices.Sorted(maps.Keys(cells)) {
		k := ledger.Key{Setup: "s", Load: "l", Pattern: name}
		spread := 0.
		if strings.Contains(name, "noisy") {
			spread = .01
		}
		family.Claims = append(family.Claims, ledger.Claim{ID: id + name, Title: "it is so", Goal: !strings.HasPrefix(name, "P"), Parts: []ledger.Part{{
			Subject: "x", Rule: judge.AtMost(1), Spread: spread, Cases: ledger.One("made up", ledger.Of(k, ledger.Extra("x", "x")))}}})
		plan.Cells = append(plan.Cells, experiment.Cell{Setup: k.Setup, Load: k.Load, Pattern: name, Uses: uses, Expect: time.Second,
			Run: func(ctx context.Context, t experiment.Trial) (results.Run, error) {
				s.begins(id + name)
				defer s.ends()
				select {
				case <-time.After(cmp.Or(s.takes, time.Second)):
				case <-ctx.Done():
					return results.Run{}, ctx.Err()
				}
				return results.Run{Offered: 1, Extra: map[string]float64{"x": cells[name](t.Repeat)}}, nil
			}})
	}
	return experiment.Declare(family, "", func(settings) (experiment.Plan, error) { return plan, nil }, nil)
}

func (s *stage) begins(cell string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs == nil {
		s.runs = map[string]int{}
	}
	s.runs[cell]++
	s.order = append(s.order, cell)
	s.active++
	s.most = max(s.most, s.active)
}

func (s *stage) ends() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
}

func always(x float64) map[string]func(int) float64 {
	return map[string]func(int) float64{"a": func(int) float64 { return x }}
}

func whole(t *testing.T, budget time.Duration, es ...*experiment.Experiment) experiment.Session {
	s := session(t, 1, judge.MinRepeats)
	s.Budget, s.Size, s.Experiments = budget, "quick", es
	return s
}

// resumed runs the session further.
func resumed(t *testing.T, s experiment.Session) (results.Session, []experiment.Part, error) {
	s.Resume = true
	return s.RunAll(t.Context())
}

func TestAWholeSessionRunsWhatWaitsSideBySideAndSaysWhatItLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stage
		published := func(int) float64 { return 0 }
		w := whole(t, 12*time.Second, s.plays("W1", .5, map[string]func(int) float64{"P": published}), s.plays("C", 0, always(2)), s.plays("D", 0, always(0)),
			s.plays("W2", .5, map[string]func(int) float64{"P": published}))
		began := time.Now()
		session, parts, err := w.RunAll(t.Context())
		if err != nil || time.Since(began) != 10*time.Second || s.most != 2 {
			t.Fatalf("%v, took %v, %d at a time, %v", err, time.Since(began), s.most, s.order)
		}
		if len(parts) != 3 || len(session.Parts) != 3 || len(session.LeftOut) != 1 || session.LeftOut[0].Experiment != "D" || !strings.Contains(session.LeftOut[0].Why, "5s more") {
			t.Fatalf("%d parts, left out %+v", len(parts), session.LeftOut)
		}
		if c := session.Parts[1].Claims[0]; c.ID != "Ca" || c.Verdict != results.Fails {
			t.Errorf("%+v", c)
		}
		stored, err := results.ReadSession(w.Dir)
		if err != nil || len(stored.Parts) != 3 || !slices.Equal(stored.Experiments, []string{"W1", "C", "D", "W2"}) || stored.Ended.IsZero() {
			t.Errorf("%+v, %v", stored, err)
		}
		if _, err := os.Stat(filepath.Join(w.Dir, "D")); !errors.Is(err, os.ErrNotExist) {
			t.Error("what was left out has a folder")
		}
		if _, _, err := w.RunAll(t.Context()); !errors.Is(err, experiment.ErrInput) {
			t.Errorf("a second session in the same folder: %v", err)
		}

		w.Budget = 5 * time.Second
		session, _, err = resumed(t, w)
		if err != nil || len(session.Parts) != 4 || len(session.LeftOut) != 0 || s.runs["Da"] != 5 || s.runs["Ca"] != 5 {
			t.Errorf("%+v, ran %v, %v", session, s.runs, err)
		}
	})
}

func TestTheTimeThatIsLeftGoesToOpenClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stage
		e := s.plays("E", 0, map[string]func(int) float64{
			"decided":  func(int) float64 { return .5 },
			"hopeless": func(repeat int) float64 { return 1 + float64(repeat%2*2-1)*.5 },
			"open": func(repeat int) float64 {
				if repeat == 2 {
					return 1.02
				}
				return .7 + .01*float64(repeat%7)
			},
		})
		w := whole(t, 2*time.Minute, e)
		began := time.Now()
		session, parts, err := w.RunAll(t.Context())
		if err != nil || time.Since(began) > 2*time.Minute {
			t.Fatalf("%v, took %v", err, time.Since(began))
		}
		res := session.Parts[0]
		if s.runs["Edecided"] != 5 || s.runs["Eopen"] <= 5 || len(res.Judged) == 0 || len(res.Judged) != res.Looks {
			t.Errorf("ran %v, looks %d at %v", s.runs, res.Looks, res.Judged)
		}
		if c := res.Claims[0]; c.Verdict != results.Holds || c.Answers[0].Repeats != 5 {
			t.Errorf("what was decided does not stay so: %+v", c)
		}
		if c := res.Claims[2]; c.Verdict != results.Holds {
			t.Errorf("with %d repeats the open one is %s: %s", c.Answers[0].Repeats, c.Verdict, c.Why)
		}
		stored, runs, err := results.Read(filepath.Join(w.Dir, "E"))
		if again := e.Judge(runs, stored); err != nil || !reflect.DeepEqual(again, parts[0].Results.Claims) {
			t.Errorf("judged again, from disk: %+v, want %+v, %v", again, parts[0].Results.Claims, err)
		}
	})
}

// Every published claim has its repeats before a goal is measured, and before any is looked at again:
// seven where figures have noise, five of exact counts.
func TestPublishedClaimsComeBeforeGoals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stage
		zero := func(int) float64 { return 0 }
		a := s.plays("A", 0, map[string]func(int) float64{"Pnoisy": zero, "goal": zero, "noisygoal": zero})
		b := s.plays("B", 0, map[string]func(int) float64{"P": zero, "goal": zero})
		w := whole(t, 37*time.Second, s.plays("G", 0, always(0)), a, b)
		session, _, err := w.RunAll(t.Context())
		if err != nil || len(session.LeftOut) != 0 || len(session.Parts) != 3 {
			t.Fatalf("%v, left out %+v", err, session.LeftOut)
		}
		want := slices.Concat(slices.Repeat([]string{"APnoisy"}, 5), slices.Repeat([]string{"BP"}, 5), slices.Repeat([]string{"APnoisy"}, 4))
		if !slices.Equal(s.order[:14], want) || s.runs["Ga"] != 5 || s.runs["Agoal"] != 5 || s.runs["Anoisygoal"] != 7 {
			t.Errorf("the order is %v", s.order)
		}
		if n := session.Parts[1].Claims[0].Answers[0].Repeats; n != 9 {
			t.Errorf("%d repeats before the first verdict", n)
		}
	})
}

// One that failed at once was once tried again until the budget was spent.
func TestWhatCannotBeMeasuredIsTriedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries int
		family := ledger.Family{ID: "X", Title: "made up", Claims: []ledger.Claim{{ID: "X1", Title: "it is so", Goal: true, Parts: []ledger.Part{{
			Subject: "x", Rule: judge.AtMost(1), Cases: ledger.One("made up", ledger.Of(ledger.Key{Setup: "s", Load: "l", Pattern: "a"}, ledger.Extra("x", "x")))}}}}}
		e := experiment.Declare(family, "", func(settings) (experiment.Plan, error) {
			return experiment.Plan{Cells: []experiment.Cell{{Setup: "s", Load: "l", Pattern: "a", Expect: time.Second, Run: func(context.Context, experiment.Trial) (results.Run, error) {
				tries++
				return results.Run{}, errors.New("out of breath")
			}}}}, nil
		}, nil)
		session, _, err := whole(t, time.Minute, e).RunAll(t.Context())
		if err != nil || tries != judge.MinRepeats || len(session.Parts) != 1 || !strings.Contains(session.Parts[0].Partial, "out of breath") {
			t.Errorf("%d tries, %v, %+v", tries, err, session.Parts)
		}
	})
}

// One that could not be prepared once ended the session, and nothing was shown.
func TestAGoalThatCannotBePreparedIsLeftOutAndToldAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stage
		disk := errors.New("the disk is full")
		broken := func(id string) *experiment.Experiment {
			e := s.plays(id, 0, always(0))
			return experiment.Declare(e.Family, "", func(settings) (experiment.Plan, error) {
				return experiment.Plan{Prepare: func(context.Context) error { return disk }, Cells: []experiment.Cell{{Setup: "s", Load: "l", Pattern: "a", Expect: time.Second}}}, nil
			}, nil)
		}
		w := whole(t, time.Minute, broken("X"), s.plays("A", 0, map[string]func(int) float64{"P": func(int) float64 { return 0 }}), s.plays("G", 0, always(0)))
		session, parts, err := w.RunAll(t.Context())
		if !errors.Is(err, disk) || len(parts) != 2 || len(session.Parts) != 2 || s.runs["Ga"] != 5 {
			t.Errorf("%v, %d parts, ran %v", err, len(parts), s.runs)
		}
		if len(session.LeftOut) != 1 || session.LeftOut[0].Experiment != "X" || !strings.Contains(session.LeftOut[0].Why, "the disk is full") {
			t.Errorf("left out: %+v", session.LeftOut)
		}
		if _, err := os.Stat(filepath.Join(w.Dir, "X")); !errors.Is(err, os.ErrNotExist) {
			t.Error("what was left out has a folder")
		}
		if _, err := results.ReadSession(w.Dir); err != nil {
			t.Error(err)
		}
		none := whole(t, time.Minute, broken("X"))
		if _, parts, err := none.RunAll(t.Context()); !errors.Is(err, disk) || len(parts) != 0 {
			t.Errorf("of nothing: %d parts, %v", len(parts), err)
		}
	})
}

// The looks of an experiment once counted for each of its claims, and a goal got no more repeats
// after the published claims had had theirs.
func TestAGoalIsSettledAfterPublishedClaimsWereLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stage
		except := func(bad ...int) func(int) float64 {
			return func(repeat int) float64 {
				if slices.Contains(bad, repeat) {
					return 1.02
				}
				return .7 + .01*float64(repeat%7)
			}
		}
		e := s.plays("E", 0, map[string]func(int) float64{"noisygoal": except(2, 4), "P": except(2, 4, 6, 9, 10, 11, 12)})
		w := whole(t, 10*time.Minute, e)
		session, _, err := w.RunAll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range session.Parts[0].Claims {
			if c.Looks < 1 || c.Looks > 3 || c.Goal && (c.Verdict != results.Holds || c.Looks != 2) {
				t.Errorf("%s is %s after %d looks, with %d repeats", c.ID, c.Verdict, c.Looks, c.Answers[0].Repeats)
			}
		}
		if session.Parts[0].Looks < 3 {
			t.Errorf("%d looks", session.Parts[0].Looks)
		}
	})
}

// A machine that is slower than expected loses repeats and goals, and no published claim.
func TestASlowMachineLosesRepeatsAndNoPublishedClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stage{takes: 3 * time.Second}
		zero := func(int) float64 { return 0 }
		a := s.plays("A", 0, map[string]func(int) float64{"P": zero, "goal": zero})
		b := s.plays("B", 0, map[string]func(int) float64{"P": zero, "goal": zero})
		w := whole(t, 30*time.Second, s.plays("G", 0, always(0)), a, b)
		session, _, err := w.RunAll(t.Context())
		if err != nil || len(session.Parts) != 2 || s.runs["AP"] != 5 || s.runs["BP"] != 5 || len(s.order) != 10 {
			t.Fatalf("%v, ran %v", err, s.runs)
		}
		for _, p := range session.Parts {
			if len(p.Claims) != 1 || p.Claims[0].Verdict != results.Holds || p.Partial != "" {
				t.Errorf("%+v", p)
			}
			stored, runs, err := results.Read(filepath.Join(w.Dir, p.Experiment))
			if again := w.Experiments[1+slices.Index([]string{"A", "B"}, p.Experiment)].Judge(runs, stored); err != nil || !reflect.DeepEqual(again, p.Claims) {
				t.Errorf("judged again: %+v, %v", again, err)
			}
		}
		var out []string
		for _, l := range session.LeftOut {
			out = append(out, l.Experiment+": "+l.Why)
		}
		if len(out) != 3 || !strings.HasPrefix(out[0], "G: it takes 15s") || !strings.HasPrefix(out[1], "A: its goals take 15s") || !strings.HasPrefix(out[2], "B: its goals take 15s") {
			t.Errorf("left out: %q", out)
		}

		s.takes, w.Budget = 0, time.Minute
		session, _, err = resumed(t, w)
		if err != nil || len(session.LeftOut) != 0 || len(session.Parts) != 3 || s.runs["Agoal"] != 5 || s.runs["Ga"] != 5 || s.runs["AP"] < 5 {
			t.Errorf("%v, ran %v, left out %+v", err, s.runs, session.LeftOut)
		}
	})
}

// A machine that was never quiet once made a session longer than its budget.
func TestNothingIsMeasuredAgainWhereTheTimeIsNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stage
		e := s.plays("A", 0, map[string]func(int) float64{"P": func(int) float64 { return 0 }})
		busy := func(budget time.Duration) int {
			s.runs = nil
			w := whole(t, budget, e)
			w.Again, w.Watch = 9, func() func() float64 { return func() float64 { return .5 } }
			if _, _, err := w.RunAll(t.Context()); err != nil {
				t.Fatal(err)
			}
			return s.runs["AP"]
		}
		if tight := busy(5500 * time.Millisecond); tight != 5 {
			t.Errorf("%d measurements", tight)
		}
		if one := busy(6500 * time.Millisecond); one != 6 {
			t.Errorf("%d measurements where there is time for one more", one)
		}
	})
}

func TestAnInterruptedWholeSessionGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stage
		w := whole(t, time.Minute, s.plays("A", 0, always(0)), s.plays("B", 0, always(0)), s.plays("C", 0, always(0)))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(7500*time.Millisecond, cancel)
		session, parts, err := w.RunAll(ctx)
		if err != nil || len(parts) != 2 || parts[0].Results.Partial != "" || !strings.Contains(parts[1].Results.Partial, "2 of 5 runs") || len(session.LeftOut) != 1 {
			t.Fatalf("%v, %d parts, %+v", err, len(parts), session.LeftOut)
		}
		var ended []bool // whenever it was written
		w.Done = func(s *results.Session) { ended = append(ended, !s.Ended.IsZero()) }
		session, parts, err = resumed(t, w)
		if n := len(ended); n < 2 || slices.Contains(ended[:n-1], true) || !ended[n-1] {
			t.Errorf("it had ended: %v", ended)
		}
		if err != nil || len(parts) != 3 || len(session.LeftOut) != 0 || s.runs["Aa"] != 5 || s.runs["Ba"] != 6 || s.runs["Ca"] != 5 {
			t.Fatalf("%v, %d parts, ran %v", err, len(parts), s.runs)
		}
		for _, p := range session.Parts {
			if p.Claims[0].Verdict != results.Holds || p.Partial != "" {
				t.Errorf("%s: %+v, %q", p.Experiment, p.Claims[0], p.Partial)
			}
		}
	})
}

func TestAWholeSessionWithoutARunLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stage
		w := whole(t, time.Minute, s.plays("A", 0, always(0)))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, parts, err := w.RunAll(ctx); err != nil || len(parts) != 0 {
			t.Errorf("%d parts, %v", len(parts), err)
		}
		if _, err := os.Stat(w.Dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the folder is there: %v", err)
		}
		if _, _, err := resumed(t, w); !errors.Is(err, experiment.ErrInput) {
			t.Errorf("nothing to go on with: %v", err)
		}
	})
}

// It once removed the results of the session that it could not go on with.
func TestAWholeSessionThatCannotGoOnIsLeftAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stage
		w := whole(t, time.Minute, s.plays("A", 0, always(0)))
		if _, _, err := w.RunAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		part, _, err := results.Read(filepath.Join(w.Dir, "A"))
		if err != nil {
			t.Fatal(err)
		}
		part.Machine.CPU = "of another machine"
		if err := results.WriteResults(filepath.Join(w.Dir, "A"), part); err != nil {
			t.Fatal(err)
		}
		if _, _, err := resumed(t, w); !errors.Is(err, experiment.ErrInput) || !strings.Contains(err.Error(), "another machine") {
			t.Errorf("%v", err)
		}
		if err := os.WriteFile(filepath.Join(w.Dir, "A", results.ResultsFile), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := resumed(t, w); !errors.Is(err, experiment.ErrInput) || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("a part that is damaged: %v", err)
		}
		if stored, err := results.ReadSession(w.Dir); err != nil || len(stored.Parts) != 1 {
			t.Errorf("%+v, %v", stored, err)
		}
	})
}

// It once went on with it, whatever its settings were.
func TestAWholeSessionDoesNotTakeTheSessionOfOneExperiment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stage
		w := whole(t, time.Minute, s.plays("A", 0, always(0)))
		one := session(t, 1, 2)
		one.Dir = filepath.Join(w.Dir, "A")
		if _, _, err := one.Run(t.Context(), w.Experiments[0], &settings{}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.RunAll(t.Context()); !errors.Is(err, experiment.ErrInput) || !strings.Contains(err.Error(), one.Dir) || s.runs["Aa"] != 2 {
			t.Errorf("ran %v, %v", s.runs, err)
		}
	})
}

func TestAPartThatWasKilledBeforeItsFirstRunBeginsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stage
		w := whole(t, time.Minute, s.plays("A", 0, always(0)), s.plays("B", 0, always(0)))
		if _, _, err := w.RunAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, f := range []string{results.RunsFile, results.ResultsFile} {
			if err := os.Remove(filepath.Join(w.Dir, "B", f)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(w.Dir, "B", results.RunsFile), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, parts, err := resumed(t, w); err != nil || len(parts) != 2 || s.runs["Aa"] != 5 || s.runs["Ba"] != 10 {
			t.Errorf("%v, %d parts, ran %v", err, len(parts), s.runs)
		}
	})
}

// It once stayed without verdicts, however often it was resumed.
func TestAPartThatWasKilledBeforeItWasJudgedAgainIsJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stage
		w := whole(t, time.Minute, s.plays("A", 0, map[string]func(int) float64{"P": func(int) float64 { return 0 }}))
		if _, _, err := w.RunAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(w.Dir, "A")
		part, _, err := results.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		part.Claims, part.Ended = nil, time.Time{}
		if err := results.WriteResults(dir, part); err != nil {
			t.Fatal(err)
		}
		session, _, err := resumed(t, w)
		if err != nil || len(session.Parts) != 1 || len(session.Parts[0].Claims) != 1 || session.Parts[0].Claims[0].Verdict != results.Holds {
			t.Errorf("%+v, %v", session.Parts, err)
		}
	})
}

// To go on with a part alone once made its second look as wide as a first one.
func TestAPartThatGoesOnAlonePaysForItsLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stage
		e := s.plays("A", 0, map[string]func(int) float64{"a": func(repeat int) float64 { return 1 + float64(repeat%2*2-1)*.5 }})
		w := whole(t, 6*time.Second, e)
		if _, _, err := w.RunAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		one := session(t, 1, judge.MinRepeats+1)
		one.Dir, one.Resume = filepath.Join(w.Dir, "A"), true
		res, _, err := one.Run(t.Context(), e, nil)
		if err != nil || !res.Part || res.Looks == 0 || len(res.Judged) != res.Looks {
			t.Errorf("part %v, %d looks at %v, %v", res.Part, res.Looks, res.Judged, err)
		}
	})
}

func TestWhatAWholeSessionTakesIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stage
		w := whole(t, 5*time.Second, s.plays("A", 0, always(0)), s.plays("B", 0, always(0)))
		if got := w.Takes(); got != "5s, without B" {
			t.Error(got)
		}
		zero := func(int) float64 { return 0 }
		noisy := s.plays("C", 0, map[string]func(int) float64{"Pnoisy": zero, "goal": zero, "noisygoal": zero})
		for budget, want := range map[time.Duration]string{time.Minute: "19s", 6 * time.Second: "6s"} {
			if got := whole(t, budget, noisy).Takes(); got != want {
				t.Errorf("two repeats more of what has noise, within %v: %s, want %s", budget, got, want)
			}
		}
	})
}
