package experiment_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
)

type settings struct {
	Size  int      `default:"10" quick:"2" full:"100" help:"How large."`
	Names []string `help:"Only these."`
}

// made is an experiment of made-up cells.
func made(plan experiment.Plan, err error) *experiment.Experiment {
	x := ledger.Figure{Name: "x", Value: func(r *results.Run) float64 { return r.Extra["x"] }}
	return experiment.Declare(ledger.Family{ID: "T", Title: "made up", Claims: []ledger.Claim{{
		ID: "T1", Title: "it is so", Parts: []ledger.Part{{Subject: "x", Rule: judge.AtMost(1), Cases: ledger.Only(
			ledger.Case{Setup: "made up", Value: ledger.Of(ledger.Key{Setup: "s", Load: "l", Pattern: "a"}, x)})}},
	}}}, "What it does.", func(settings) (experiment.Plan, error) { return plan, err }, nil)
}

func start(t *testing.T, ctx context.Context, s experiment.Session, plan experiment.Plan) (results.Results, []results.Run, error) {
	t.Helper()
	e := made(plan, nil)
	return s.Run(ctx, e, e.Config(""))
}

// runLog records the order in which cells ran.
type runLog struct {
	mu    sync.Mutex
	lines []string
	seeds map[int]uint64
}

func (d *runLog) cell(name string) experiment.Cell {
	return experiment.Cell{Setup: "s", Load: "l", Pattern: name,
		Run: func(_ context.Context, t experiment.Trial) (results.Run, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.lines = append(d.lines, fmt.Sprintf("%d%s", t.Repeat, name))
			if d.seeds == nil {
				d.seeds = map[int]uint64{}
			}
			if s, ok := d.seeds[t.Repeat]; ok && s != t.Seed {
				return results.Run{}, errors.New("cells of one repeat have different seeds")
			}
			d.seeds[t.Repeat] = t.Seed
			return results.Run{Offered: 1}, nil
		}}
}

func quiet() func() float64 { return func() float64 { return 0 } }

func session(t *testing.T, seed uint64, repeats int) experiment.Session {
	return experiment.Session{Dir: filepath.Join(t.TempDir(), "out"), Seed: seed, Repeats: repeats, Watch: quiet}
}

func TestRepeatsAreInterleavedInAnOrderOfTheirOwn(t *testing.T) {
	run := func(seed uint64) []string {
		var d runLog
		plan := experiment.Plan{}
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			plan.Cells = append(plan.Cells, d.cell(name))
		}
		res, runs, err := start(t, t.Context(), session(t, seed, 4), plan)
		if err != nil || res.Partial != "" || len(runs) != 20 {
			t.Fatalf("%d runs, partial %q, %v", len(runs), res.Partial, err)
		}
		for i, r := range runs {
			if r.Order != i {
				t.Fatalf("run %d says it was number %d", i, r.Order)
			}
		}
		return d.lines
	}
	lines := run(1)
	orders := map[string]bool{}
	for repeat := range 4 {
		part := slices.Clone(lines[repeat*5 : repeat*5+5])
		order := ""
		for _, l := range part {
			if l[0] != byte('0'+repeat) {
				t.Fatalf("%v: repeats overlap", lines)
			}
			order += l[1:]
		}
		orders[order] = true
		slices.Sort(part)
		if strings.Join(part, "") != strings.ReplaceAll("RaRbRcRdRe", "R", fmt.Sprint(repeat)) {
			t.Fatalf("repeat %d ran %v", repeat, part)
		}
	}
	if len(orders) < 2 {
		t.Error("every repeat ran in the same order")
	}
	if !slices.Equal(lines, run(1)) {
		t.Error("the same seed gave another order")
	}
}

func TestWhatHasNoMeasurementIsSaidAndTheRestGoesOn(t *testing.T) {
	var d runLog
	group := func(pattern string, run func() ([]results.Run, error)) experiment.Group {
		return experiment.Group{Keys: []ledger.Key{{Setup: "s", Load: "l", Pattern: pattern}, {Setup: "s", Load: "l", Pattern: pattern + " too"}},
			Run: func(context.Context, experiment.Trial) ([]results.Run, error) { return run() }}
	}
	plan := experiment.Plan{Cells: []experiment.Cell{d.cell("good")},
		Groups: []experiment.Group{group("bad", func() ([]results.Run, error) { return nil, errors.New("it broke") }), group("odd", func() ([]results.Run, error) { return make([]results.Run, 3), nil })}}
	s := session(t, 1, 1)
	res, runs, err := start(t, t.Context(), s, plan)
	if err != nil || len(runs) != 5 || !strings.Contains(res.Partial, "2 of 3") {
		t.Fatalf("%d runs, partial %q, %v", len(runs), res.Partial, err)
	}
	for _, run := range runs {
		want := map[string]string{"good": "", "bad": "it broke", "odd": "3 runs of 2 cells"}[strings.TrimSuffix(run.Pattern, " too")]
		if run.Failed != want {
			t.Errorf("%s: %q", run.Pattern, run.Failed)
		}
	}
	if back, stored, err := results.Read(s.Dir); err != nil || len(stored) != 5 || len(back.Claims) != 1 {
		t.Errorf("on disk: %d runs, %+v, %v", len(stored), back.Claims, err)
	}
}

func TestBadSettingsLeaveNothingBehind(t *testing.T) {
	s := session(t, 1, 1)
	_, _, err := s.Run(t.Context(), made(experiment.Plan{}, errors.New("negative workers")), &settings{})
	if !errors.Is(err, experiment.ErrInput) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(s.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is there: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.Dir = filepath.Join(file, "below")
	if _, _, err := start(t, t.Context(), s, experiment.Plan{}); !errors.Is(err, experiment.ErrInput) {
		t.Errorf("unwritable folder: %v", err)
	}
	s = session(t, 1, 1)
	unprepared := experiment.Plan{Prepare: func(context.Context) error { return errors.New("disk full") }}
	if _, _, err := start(t, t.Context(), s, unprepared); !errors.Is(err, experiment.ErrInput) {
		t.Errorf("nothing to measure with: %v", err)
	}
	t.Setenv("PATH", "")
	unbuilt := experiment.Plan{Programs: []contestant.Spec{{Program: "patient"}}}
	if _, _, err := start(t, t.Context(), s, unbuilt); !errors.Is(err, experiment.ErrInput) || !strings.Contains(err.Error(), "no go command") {
		t.Errorf("a program that cannot be built: %v", err)
	}
	if _, err := os.Stat(s.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is there: %v", err)
	}
}

func TestADisturbedMeasurementIsMadeAgainAndSaysSoIfThatDoesNotHelp(t *testing.T) {
	for again, want := range map[int]float64{0: 0.5, 1: 0.5, 2: 0} {
		var d runLog
		looks := 0
		s := session(t, 1, 1)
		s.Again = again
		s.Watch = func() func() float64 {
			looks++
			return func() float64 {
				if looks <= 2 {
					return 0.5
				}
				return 0.01
			}
		}
		one := d.cell("a")
		one.Expect = time.Hour // there is time to measure again
		_, runs, err := start(t, t.Context(), s, experiment.Plan{Cells: []experiment.Cell{one}})
		if err != nil || len(runs) != 1 || runs[0].Disturbed != want || len(d.lines) != again+1 {
			t.Errorf("%d more allowed: %d runs, disturbed %v, measured %v, %v", again, len(runs), runs[0].Disturbed, d.lines, err)
		}
	}
}

// A machine on which something else computes all the time once made a session take three times as
// long, and left every repeat as disturbed as before.
func TestOnAMachineThatIsNeverQuietNothingIsMeasuredAgainForLong(t *testing.T) {
	var d runLog
	s := session(t, 1, 20)
	s.Again = 2
	s.Watch = func() func() float64 { return func() float64 { return 0.5 } }
	one := d.cell("a")
	one.Expect = time.Hour
	_, runs, err := start(t, t.Context(), s, experiment.Plan{Cells: []experiment.Cell{one}})
	if err != nil || len(runs) != 20 || len(d.lines) != 20+3 {
		t.Errorf("%d runs, %d measurements, %v", len(runs), len(d.lines), err)
	}
}

// It once made the session partial.
func TestAFailureThatIsMeasuredAgainIsNone(t *testing.T) {
	disturbed, calls := .5, 0
	s := session(t, 1, 1)
	s.Again = 1
	s.Watch = func() func() float64 {
		return func() float64 {
			defer func() { disturbed = 0 }()
			return disturbed
		}
	}
	res, runs, err := start(t, t.Context(), s, experiment.Plan{Cells: []experiment.Cell{{Setup: "s", Load: "l", Pattern: "a", Expect: time.Hour,
		Run: func(context.Context, experiment.Trial) (results.Run, error) {
			if calls++; calls == 1 {
				return results.Run{}, errors.New("out of breath")
			}
			return results.Run{Offered: 1}, nil
		}}}})
	if err != nil || calls != 2 || len(runs) != 1 || runs[0].Failed != "" || res.Partial != "" {
		t.Errorf("%d calls, %+v, partial %q, %v", calls, runs, res.Partial, err)
	}
}

func TestASessionGoesOnWhereItEnded(t *testing.T) {
	var d runLog
	e := made(experiment.Plan{Cells: []experiment.Cell{d.cell("a"), d.cell("b")}}, nil)
	s := session(t, 7, 5)
	if _, _, err := s.Run(t.Context(), e, e.Config("quick")); err != nil {
		t.Fatal(err)
	}
	s.Seed, s.Repeats, s.Resume = 99, 8, true
	res, runs, err := s.Run(t.Context(), e, nil)
	if err != nil || len(runs) != 16 || len(d.lines) != 16 || res.Seed != 7 || res.Looks != 1 || res.Repeats != 8 || res.Partial != "" {
		t.Fatalf("%d runs, measured %v, %+v, %v", len(runs), d.lines, res, err)
	}
	if !strings.Contains(string(res.Config), `"Size":2`) && !strings.Contains(string(res.Config), `"Size": 2`) {
		t.Errorf("settings %s", res.Config)
	}
	if got := res.Claims[0].Answers[0].Repeats; got != 8 {
		t.Errorf("judged on %d repeats", got)
	}
	if res, _, err := s.Run(t.Context(), e, nil); err != nil || res.Looks != 1 || len(d.lines) != 16 {
		t.Errorf("nothing was left to do: %d looks, measured %v, %v", res.Looks, d.lines, err)
	}
	other := experiment.Declare(ledger.Family{ID: "U"}, "", func(settings) (experiment.Plan, error) { return experiment.Plan{}, nil }, nil)
	if _, _, err := s.Run(t.Context(), other, nil); !errors.Is(err, experiment.ErrInput) || !strings.Contains(err.Error(), "spillway lab T --resume") {
		t.Errorf("another experiment: %v", err)
	}
	stored, _, err := results.Read(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	stored.Revision = "of last year"
	if err := results.WriteResults(s.Dir, stored); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Run(t.Context(), e, nil); !errors.Is(err, experiment.ErrInput) || !strings.Contains(err.Error(), "of last year") {
		t.Errorf("another revision: %v", err)
	}
	s.Dir = t.TempDir()
	if _, _, err := s.Run(t.Context(), e, nil); !errors.Is(err, experiment.ErrInput) {
		t.Errorf("nothing to go on with: %v", err)
	}
}

// An interruption used to count as a look, after which five repeats gave no verdict.
func TestAnInterruptedSessionIsJudgedAndGoesOnWithoutALook(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	plan := experiment.Plan{Cells: []experiment.Cell{{Setup: "s", Load: "l", Pattern: "a", Run: func(ctx context.Context, tr experiment.Trial) (results.Run, error) {
		if tr.Repeat == 2 && ctx.Err() == nil {
			cancel()
		}
		return results.Run{Extra: map[string]float64{"x": 0.5}}, ctx.Err()
	}}}}
	e, s := made(plan, nil), session(t, 1, 5)
	res, runs, err := s.Run(ctx, e, e.Config(""))
	if err != nil || len(runs) != 2 || len(res.Claims) != 1 || !strings.Contains(res.Partial, "interrupted after 2 of 5 runs") {
		t.Fatalf("%d runs, %+v, %v", len(runs), res, err)
	}
	for _, name := range []string{results.RunsFile, results.ResultsFile, results.ReportFile} {
		if _, err := os.Stat(filepath.Join(s.Dir, name)); err != nil {
			t.Error(err)
		}
	}
	s.Resume = true
	res, runs, err = s.Run(t.Context(), e, nil)
	if err != nil || len(runs) != 5 || res.Looks != 0 || res.Partial != "" || res.Claims[0].Verdict != results.Holds {
		t.Errorf("%d runs, %+v, %v", len(runs), res, err)
	}
}

func TestSizesComeFromTheTagsAndDifferencesAreSaid(t *testing.T) {
	if a, b, c := experiment.Sized[settings](""), experiment.Sized[settings]("quick"), experiment.Sized[settings]("full"); a.Size != 10 || b.Size != 2 || c.Size != 100 {
		t.Errorf("sizes %v, %v, %v", a, b, c)
	}
	e := made(experiment.Plan{Cells: []experiment.Cell{{Expect: 12 * time.Second}}}, nil)
	if got := e.Takes("full"); got != "1 min 20 s" {
		t.Errorf("takes %s", got)
	}
	config := e.Config("").(*settings)
	config.Names = []string{"x"}
	s := session(t, 1, 1)
	res, _, err := s.Run(t.Context(), made(experiment.Plan{Cells: []experiment.Cell{new(runLog).cell("a")}}, nil), config)
	if err != nil || res.Scaled != "size 10 instead of 100; names x instead of all" {
		t.Errorf("scaled %q, %v", res.Scaled, err)
	}
	if err := experiment.Known("contestant", []string{"a", "x"}, []string{"a", "b"}); err == nil || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("%v", err)
	}
}
