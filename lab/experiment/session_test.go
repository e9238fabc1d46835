package experiment_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
)

// made is an experiment of made-up cells.
type made struct {
	plan experiment.Plan
	err  error
}

func (made) ID() string                       { return "T" }
func (made) Title() string                    { return "made up" }
func (m made) Plan() (experiment.Plan, error) { return m.plan, m.err }
func (made) Judge(runs []results.Run, seed uint64) []results.Claim {
	return []results.Claim{{ID: "T1", Title: "it is so", Setup: "made up", Rule: "always", Why: "It is.", Verdict: results.Holds, Runs: len(runs)}}
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

func session(t *testing.T, seed uint64, repeats int) experiment.Session {
	return experiment.Session{Dir: filepath.Join(t.TempDir(), "out"), Seed: seed, Repeats: repeats,
		Progress: experiment.NewProgress(io.Discard, false, 0)}
}

func TestRepeatsAreInterleavedInAnOrderOfTheirOwn(t *testing.T) {
	run := func(seed uint64) []string {
		var d runLog
		plan := experiment.Plan{}
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			plan.Cells = append(plan.Cells, d.cell(name))
		}
		res, runs, err := session(t, seed, 4).Run(t.Context(), made{plan: plan})
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

func TestCellsBesideEachOtherRunAtTheSameTime(t *testing.T) {
	var met sync.WaitGroup
	met.Add(2)
	side := experiment.Cell{Setup: "s", Load: "l", Pattern: "p", Beside: "x", Run: func(context.Context, experiment.Trial) (results.Run, error) {
		met.Done()
		met.Wait() // forever, if the other one does not run
		return results.Run{Offered: 1}, nil
	}}
	other := side
	other.Pattern = "q"
	_, runs, err := session(t, 1, 1).Run(t.Context(), made{plan: experiment.Plan{Cells: []experiment.Cell{side, other}}})
	if err != nil || len(runs) != 2 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
}

func TestACellWithoutMeasurementIsSaidAndTheRestGoesOn(t *testing.T) {
	var d runLog
	plan := experiment.Plan{Cells: []experiment.Cell{d.cell("good"), {Setup: "s", Load: "l", Pattern: "bad",
		Run: func(context.Context, experiment.Trial) (results.Run, error) {
			return results.Run{}, errors.New("it broke")
		}}},
		Demos: []experiment.Demo{{ID: "d", Run: func(context.Context) (results.Demo, error) { return results.Demo{ID: "d"}, nil }}}}
	s := session(t, 1, 2)
	res, runs, err := s.Run(t.Context(), made{plan: plan})
	if err != nil || len(runs) != 4 || len(res.Demos) != 1 {
		t.Fatalf("%d runs, %d demonstrations, %v", len(runs), len(res.Demos), err)
	}
	if !strings.Contains(res.Partial, "2 of 5") || !strings.Contains(res.Partial, "it broke") {
		t.Errorf("partial: %q", res.Partial)
	}
	back, stored, err := results.Read(s.Dir)
	if err != nil || len(stored) != 4 || len(back.Claims) != 1 {
		t.Errorf("on disk: %d runs, %+v, %v", len(stored), back.Claims, err)
	}
}

func TestAnInterruptedSessionIsJudgedAndSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var d runLog
	first := d.cell("a")
	plan := experiment.Plan{Cells: []experiment.Cell{{Setup: "s", Load: "l", Pattern: "b", Run: func(ctx context.Context, tr experiment.Trial) (results.Run, error) {
		if tr.Repeat == 1 {
			cancel()
			return results.Run{}, ctx.Err()
		}
		return first.Run(ctx, tr)
	}}}}
	s := session(t, 1, 5)
	res, runs, err := s.Run(ctx, made{plan: plan})
	if err != nil || len(runs) != 1 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	if !strings.Contains(res.Partial, "interrupted after 1 of 5 runs") || len(res.Claims) != 1 {
		t.Errorf("partial %q, claims %v", res.Partial, res.Claims)
	}
	for _, name := range []string{results.RunsFile, results.ResultsFile, results.ReportFile} {
		if _, err := os.Stat(filepath.Join(s.Dir, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestBadSettingsLeaveNothingBehind(t *testing.T) {
	s := session(t, 1, 1)
	_, _, err := s.Run(t.Context(), made{err: errors.New("negative workers")})
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
	if _, _, err := s.Run(t.Context(), made{}); !errors.Is(err, experiment.ErrInput) {
		t.Errorf("unwritable folder: %v", err)
	}
	s = session(t, 1, 1)
	unprepared := made{plan: experiment.Plan{Prepare: func(context.Context) error { return errors.New("disk full") }}}
	if _, _, err := s.Run(t.Context(), unprepared); !errors.Is(err, experiment.ErrInput) {
		t.Errorf("nothing to measure with: %v", err)
	}
	t.Setenv("PATH", "")
	unbuilt := made{plan: experiment.Plan{Programs: []contestant.Spec{{Program: "patient"}}}}
	if _, _, err := s.Run(t.Context(), unbuilt); !errors.Is(err, experiment.ErrInput) || !strings.Contains(err.Error(), "no go command") {
		t.Errorf("a program that cannot be built: %v", err)
	}
	if _, err := os.Stat(s.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is there: %v", err)
	}
}

func TestLinesAppearAboveTheLiveOne(t *testing.T) {
	var out strings.Builder
	fmt.Fprintln(experiment.NewProgress(&out, true, 40), "building")
	if got := out.String(); !strings.HasPrefix(got, "\r\x1b[Kbuilding\n\r\x1b[K") {
		t.Errorf("%q", got)
	}
	var none *experiment.Progress
	fmt.Fprintln(none, "nobody looks")
}

func TestProgressWithoutATerminalIsOneLineAStep(t *testing.T) {
	var out strings.Builder
	var d runLog
	s := session(t, 1, 2)
	s.Progress = experiment.NewProgress(&out, false, 0)
	if _, _, err := s.Run(t.Context(), made{plan: experiment.Plan{Cells: []experiment.Cell{d.cell("a")}}}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "\n"); got != 3 || strings.Contains(out.String(), "\x1b") {
		t.Errorf("want the forecast and two steps:\n%s", out.String())
	}
}
