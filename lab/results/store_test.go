package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/load/judge"
)

func someRuns() []Run {
	h := &histogram.Histogram{}
	h.RecordN(75e6, 3)
	return []Run{
		{Setup: "published", Load: "low", Pattern: "naive", Offered: 3, Elapsed: 1.5, Outcomes: []Outcome{{"ok", 3, h}}},
		{Setup: "real", Load: "high", Pattern: "workerpool", Repeat: 1, Killed: "memory cap", Extra: map[string]float64{"x": 1}},
	}
}

func TestTheGistOfAFailureHasNoStacks(t *testing.T) {
	for failed, want := range map[string]string{
		"": "", "contestant x: exit status 1": "contestant x: exit status 1",
		"contestant x: exit status 2\nfatal error: thread exhaustion\n\nruntime stack:\nmain.f()": "contestant x: exit status 2\nfatal error: thread exhaustion",
	} {
		if got := Gist(failed); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func logged(t *testing.T, runs []Run) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "made", "as needed")
	log := must(CreateRunLog(dir))(t)
	for _, r := range runs {
		ok(t, log.Append(r))
	}
	ok(t, log.Close())
	return dir
}

func TestWhatWasWrittenIsRead(t *testing.T) {
	dir := logged(t, someRuns())
	want := Results{Schema: Schema, Experiment: "H", Ended: time.Unix(1, 0).UTC(), Seed: 7, Claims: []Claim{{ID: "H1", Verdict: Holds}}}
	ok(t, WriteResults(dir, Results{Experiment: "H", Ended: want.Ended, Seed: 7, Claims: want.Claims}))
	res, runs, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(res, want) {
		t.Errorf("read %+v, want %+v", res, want)
	}
	if len(runs) != 2 || runs[0].Of("ok").Latency.Count() != 3 || runs[1].Killed != "memory cap" {
		t.Errorf("read %+v", runs)
	}
}

func TestARunThatWasCutOffIsLeftOutAndSaid(t *testing.T) {
	dir := logged(t, someRuns())
	ok(t, WriteResults(dir, Results{Ended: time.Unix(1, 0)}))
	path := filepath.Join(dir, RunsFile)
	whole := must(os.ReadFile(path))(t)
	first := bytes.IndexByte(whole, '\n') + 1
	for end := first; end <= len(whole); end++ {
		runs, cut, err := readRuns(whole[:end])
		complete := end >= len(whole)-1 // the last newline adds nothing
		wantCut := end > first && !complete
		if err != nil || cut != wantCut || len(runs) != 1 && !complete || complete && len(runs) != 2 {
			t.Fatalf("cut at %d of %d: %d runs, cut %v, error %v", end, len(whole), len(runs), cut, err)
		}
	}
	ok(t, os.WriteFile(path, whole[:len(whole)-20], 0o644))
	res, runs, err := Read(dir)
	if err != nil || len(runs) != 1 || !strings.Contains(res.Partial, "cut off") {
		t.Errorf("%d runs, partial %q, error %v", len(runs), res.Partial, err)
	}
}

func TestADamagedLineInTheMiddleIsAnErrorWithItsNumber(t *testing.T) {
	_, _, err := readRuns([]byte("{}\n\n{\"setup\":3}\n{}\n"))
	if err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("error %v, want line 3 named", err)
	}
}

func TestRunsOfTwoSessionsNeverMix(t *testing.T) {
	dir := logged(t, someRuns())
	before, _ := os.ReadFile(filepath.Join(dir, RunsFile))
	if _, err := CreateRunLog(dir); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("error %v, want fs.ErrExist", err)
	}
	if after, _ := os.ReadFile(filepath.Join(dir, RunsFile)); !bytes.Equal(before, after) {
		t.Error("the earlier runs were changed")
	}
}

func TestAnUnusableFolderIsAClearError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	ok(t, os.WriteFile(file, nil, 0o644))
	if _, err := CreateRunLog(file); err == nil || !strings.Contains(err.Error(), "choose another") {
		t.Errorf("a file as folder: %v", err)
	}
	if _, _, err := Read(t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a results folder") {
		t.Errorf("an empty folder: %v", err)
	}
}

func TestAnUnfinishedSessionIsKnownByItsStart(t *testing.T) {
	dir := logged(t, someRuns())
	if _, runs, err := Read(dir); !errors.Is(err, fs.ErrNotExist) || len(runs) != 2 {
		t.Errorf("without its start: %d runs, error %v; want both and fs.ErrNotExist", len(runs), err)
	}
	ok(t, WriteResults(dir, Results{Experiment: "H", Seed: 3, Machine: Machine{CPU: "a chip"}}))
	res, runs, err := Read(dir)
	if err != nil || len(runs) != 2 || res.Experiment != "H" || res.Machine.CPU != "a chip" || !strings.Contains(res.Partial, "killed after 2 runs") {
		t.Errorf("%+v, %d runs, %v", res, len(runs), err)
	}
}

func TestFiguresThatThereAreNotStaySo(t *testing.T) {
	in := Answer{Measured: math.NaN(), Low: 0, High: 2, Rule: judge.AtLeast(3), Why: "It is missing."}
	data, err := json.Marshal(in)
	if err != nil || !strings.Contains(string(data), `"measured":null`) || !strings.Contains(string(data), `"low":0`) {
		t.Fatalf("%s, %v", data, err)
	}
	var back Answer
	if err := json.Unmarshal(data, &back); err != nil || !math.IsNaN(back.Measured) || back.High != 2 || back.Rule != in.Rule || back.Why != in.Why {
		t.Errorf("%+v, %v", back, err)
	}
}

func TestALogGoesOnWithoutItsCutLine(t *testing.T) {
	dir := logged(t, someRuns())
	f := must(os.OpenFile(filepath.Join(dir, RunsFile), os.O_APPEND|os.O_WRONLY, 0))(t)
	must(f.WriteString(`{"setup":"cu`))(t)
	f.Close()
	log := must(ContinueRunLog(dir))(t)
	again := someRuns()[0]
	again.Offered = 99
	ok(t, log.Append(again))
	log.Close()
	_, runs, err := Read(dir)
	if !errors.Is(err, fs.ErrNotExist) || len(runs) != 2 || runs[1].Offered != 99 {
		t.Errorf("%+v, %v; want the run that was made again in place of the first", runs, err)
	}
	if _, err := ContinueRunLog(t.TempDir()); err == nil {
		t.Error("an empty folder can be gone on with")
	}
}

func TestAnUnknownSchemaIsRefused(t *testing.T) {
	dir := logged(t, nil)
	ok(t, WriteResults(dir, Results{Schema: "spillway/results/v99"}))
	if _, _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "v99") {
		t.Errorf("error %v", err)
	}
}

func TestWhatOlderVersionsWroteBesideIsNoError(t *testing.T) {
	dir := logged(t, nil)
	text := `{"schema": "` + Schema + `", "seed": 7, "demos": [{"id": "empty-200"}]}`
	ok(t, WriteFile(filepath.Join(dir, ResultsFile), []byte(text)))
	if res, _, err := Read(dir); err != nil || res.Seed != 7 {
		t.Errorf("seed %d, %v", res.Seed, err)
	}
}

func TestAFailedWriteLeavesTheOldResultsAndNoLitter(t *testing.T) {
	dir := logged(t, nil)
	ok(t, WriteResults(dir, Results{Seed: 1}))
	if err := WriteResults(dir, Results{Seed: 2, Claims: []Claim{{Answers: []Answer{{Chance: math.NaN()}}}}}); err == nil {
		t.Error("a figure that JSON cannot hold was written")
	}
	if err := WriteFile(filepath.Join(dir, "no such folder", "x"), nil); err == nil {
		t.Error("a file was written into a folder that does not exist")
	}
	if res, _, err := Read(dir); err != nil || res.Seed != 1 {
		t.Errorf("seed %d, error %v; want the old results", res.Seed, err)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 2 {
		t.Errorf("the folder holds %v", entries)
	}
}

func FuzzReadRuns(f *testing.F) {
	var whole bytes.Buffer
	for _, r := range someRuns() {
		line, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		whole.Write(append(line, '\n'))
	}
	f.Add(whole.Bytes())
	f.Add(whole.Bytes()[:whole.Len()-9])
	f.Add([]byte("{}\n\x00\n{}"))
	f.Add([]byte(`{"outcomes":[{"kind":"ok","count":1,"latency":null}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		runs, _, err := readRuns(data)
		if err != nil {
			return
		}
		for _, r := range runs {
			for _, o := range r.Outcomes {
				o.Latency.Quantile(.99) // never nil
			}
		}
		// Runs that were read can be written and read again unchanged.
		var again bytes.Buffer
		for _, r := range runs {
			line, err := json.Marshal(r)
			if err != nil {
				t.Skip() // JSON cannot hold the sum
			}
			again.Write(append(line, '\n'))
		}
		back, cut, err := readRuns(again.Bytes())
		if err != nil || cut || len(back) != len(runs) {
			t.Fatalf("%d runs came back as %d, cut %v, error %v", len(runs), len(back), cut, err)
		}
	})
}

// A last line that lacks only its end was read, so it must not be cut off.
func TestAWholeLastLineIsKept(t *testing.T) {
	dir := logged(t, someRuns())
	path := filepath.Join(dir, RunsFile)
	whole, _ := os.ReadFile(path)
	for cut, want := range map[int]int{1: len(whole), 2: bytes.IndexByte(whole, '\n') + 1} {
		ok(t, os.WriteFile(path, whole[:len(whole)-cut], 0o644))
		log := must(ContinueRunLog(dir))(t)
		log.Close()
		if got, _ := os.ReadFile(path); len(got) != want {
			t.Errorf("%d bytes cut off: %d are left, want %d", cut, len(got), want)
		}
	}
}

func TestRunsOfAnotherExperimentAreRefused(t *testing.T) {
	runs := someRuns()
	runs[1].Experiment = "G"
	dir := logged(t, runs)
	ok(t, WriteResults(dir, Results{Experiment: "H"}))
	if _, _, err := Read(dir); err == nil || !strings.Contains(err.Error(), `run 2 is of experiment "G"`) {
		t.Error(err)
	}
}

func TestAnExperimentDoesNotReplaceASession(t *testing.T) {
	dir := t.TempDir()
	ok(t, WriteSession(dir, Session{Schema: SessionSchema}))
	if _, err := CreateRunLog(dir); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v, want fs.ErrExist", err)
	}
}

func TestMoreRepeatsThanASessionMayHaveAreDamage(t *testing.T) {
	dir := logged(t, nil)
	for _, repeats := range []int{-1, MaxRepeats + 1} {
		ok(t, WriteResults(dir, Results{Repeats: repeats}))
		if _, _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%d repeats: %v", repeats, err)
		}
	}
}

func TestTwoSessionsDoNotShareAFolder(t *testing.T) {
	dir := t.TempDir()
	log := must(CreateRunLog(dir))(t)
	if _, err := ContinueRunLog(dir); runtime.GOOS != "windows" && !errors.Is(err, errLocked) {
		t.Error("a second session took the folder")
	}
	ok(t, WriteResults(dir, Results{Experiment: "H"}))
	if res, _, err := Read(dir); err != nil || runtime.GOOS != "windows" && !strings.Contains(res.Partial, "goes on") {
		t.Errorf("%q, %v", res.Partial, err)
	}
	log.Close()
	if res, _, err := Read(dir); err != nil || !strings.Contains(res.Partial, "killed") {
		t.Errorf("%q, %v", res.Partial, err)
	}
}

// The later one of two disturbed runs once counted, however much more other processes had disturbed it.
func TestTheLessDisturbedOfTwoRunsCounts(t *testing.T) {
	for _, c := range []struct {
		name string
		runs []Run
		want int
	}{
		{"both disturbed, the first less", []Run{{Disturbed: .2}, {Disturbed: .6}}, 0},
		{"both disturbed, the second less", []Run{{Disturbed: .6}, {Disturbed: .2}}, 1},
		{"the second in quiet", []Run{{Disturbed: .2}, {}}, 1},
		{"disturbed alike", []Run{{Disturbed: .2}, {Disturbed: .2}}, 1},
		{"of three the middle one", []Run{{Disturbed: .3}, {Disturbed: .1}, {Disturbed: .2}}, 1},
		{"what failed counts for nothing", []Run{{Disturbed: .2}, {Failed: "it crashed"}}, 0},
		{"what was measured counts", []Run{{Failed: "it crashed"}, {Disturbed: .9}}, 1},
	} {
		for i := range c.runs {
			c.runs[i].Order = i
		}
		got := Latest(append(c.runs, Run{Repeat: 1, Order: 9}))
		if len(got) != 2 || got[0].Order != c.want || got[1].Order != 9 {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// must is a value that has to be there.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		ok(t, err)
		return v
	}
}

// ok ends the test at an error.
func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
