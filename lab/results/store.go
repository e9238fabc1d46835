package results

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spillway-go/spillway/histogram"
)

// RunLog stores the raw runs of a session as they end, one JSON line each, so that a
// later failure does not lose them. It is not safe for concurrent use.
type RunLog struct {
	f    *os.File
	made bool // the folder was made for it
}

// CreateRunLog makes the folder if necessary and starts its runs file. A folder
// that already holds runs, or a session of several experiments, is refused with an error that is fs.ErrExist: runs of
// two sessions must not mix, and measurements are never overwritten.
func CreateRunLog(dir string) (*RunLog, error) {
	_, err := os.Stat(dir)
	made := errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the results folder: %w; choose another one", err)
	}
	path := filepath.Join(dir, RunsFile)
	if _, err := ReadSession(dir); err == nil {
		return nil, fmt.Errorf("%s holds a session of several experiments; choose another folder: %w", dir, fs.ErrExist)
	}
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		return nil, fmt.Errorf("%s holds the runs of an earlier session; choose another folder or remove it: %w", dir, fs.ErrExist)
	}
	f, err := open(path, os.O_CREATE)
	if err != nil {
		return nil, fmt.Errorf("%w, or choose another folder", err)
	}
	return &RunLog{f, made}, nil
}

var errLocked = errors.New("another session writes into this folder; wait for its end")

// open opens a runs file for this session alone: two would disturb each other.
func open(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|os.O_APPEND|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot write into the results folder: %w", err)
	}
	if err := lock(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", filepath.Dir(path), err)
	}
	return f, nil
}

// ContinueRunLog goes on with the runs file of an earlier session. A last line that was
// cut off is removed.
func ContinueRunLog(dir string) (*RunLog, error) {
	path := filepath.Join(dir, RunsFile)
	f, err := open(path, 0)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	switch whole := bytes.LastIndexByte(data, '\n') + 1; {
	case err != nil || whole == len(data):
	case json.Valid(data[whole:]): // only its end of line is missing
		_, err = f.WriteString("\n")
	default:
		err = f.Truncate(int64(whole))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &RunLog{f: f}, nil
}

// Append writes one run as one line, in one write.
func (l *RunLog) Append(r Run) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("run %s/%s/%s cannot be stored: %w", r.Setup, r.Load, r.Pattern, err)
	}
	_, err = l.f.Write(append(line, '\n'))
	return err
}

// Close ends the log. The file stays.
func (l *RunLog) Close() error { return l.f.Close() }

// Discard ends the log and removes it, and the folder if it was made for it: there will
// be no runs.
func (l *RunLog) Discard() {
	l.f.Close()
	os.Remove(l.f.Name())
	os.Remove(filepath.Join(filepath.Dir(l.f.Name()), ResultsFile))
	if l.made {
		os.Remove(filepath.Dir(l.f.Name())) // unless something else is in it by now
	}
}

// readRuns reads one run a line. A last line that was cut off in the middle, as
// an interrupted program leaves it, is skipped and reported by cut; any other
// line that is not a run is an error.
func readRuns(data []byte) (runs []Run, cut bool, err error) {
	n := 0
	for line := range bytes.Lines(data) {
		n++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var run Run
		if err := json.Unmarshal(line, &run); err != nil && !bytes.HasSuffix(line, []byte("\n")) {
			return runs, true, nil
		} else if err != nil {
			return runs, false, fmt.Errorf("line %d is not a run: %w", n, err)
		}
		if run.Repeat < 0 || run.Repeat >= MaxRepeats {
			return runs, false, fmt.Errorf("line %d is not a run: its repeat is %d", n, run.Repeat)
		}
		for i := range run.Outcomes {
			run.Outcomes[i].Latency = cmp.Or(run.Outcomes[i].Latency, &histogram.Histogram{})
		}
		runs = append(runs, run)
	}
	return runs, false, nil
}

// MaxRepeats is the most repeats of a session.
const MaxRepeats = 1000

// Read reads the results of a folder. Partial says if the session goes on, was killed
// before its end, or the last run was cut off.
func Read(dir string) (Results, []Run, error) {
	path := filepath.Join(dir, RunsFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return Results{}, nil, fmt.Errorf("%s is not a results folder: %w", dir, err)
	}
	runs, cut, err := readRuns(data)
	if err != nil {
		return Results{}, nil, fmt.Errorf("%s: %w", path, err)
	}
	res, err := readResults(filepath.Join(dir, ResultsFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s has runs but no %s, so that nothing says what they are: %w", dir, ResultsFile, err)
	}
	for i, r := range runs {
		if err == nil && r.Experiment != "" && r.Experiment != res.Experiment {
			err = fmt.Errorf("%s: run %d is of experiment %q, the session of %q", path, i+1, r.Experiment, res.Experiment)
		}
	}
	switch {
	case res.Ended.IsZero() && written(path):
		res.Partial = fmt.Sprintf("the session goes on; so far it has %d runs", len(runs))
	case res.Ended.IsZero():
		res.Partial = fmt.Sprintf("the session was killed after %d runs", len(runs))
		if len(runs) > 0 {
			last := runs[len(runs)-1]
			res.Ended = last.Started.Add(time.Duration(last.Elapsed * float64(time.Second)))
		}
	case cut && res.Partial == "":
		res.Partial = "the last run was cut off while it was written"
	}
	return res, Latest(runs), err
}

// written reports whether a session writes the runs file now.
func written(path string) bool {
	f, err := open(path, 0)
	if err == nil {
		f.Close()
	}
	return errors.Is(err, errLocked)
}

func readResults(path string) (res Results, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Results{}, err
	}
	if err := json.Unmarshal(data, &res); err != nil {
		return Results{}, fmt.Errorf("%s is damaged: %w", path, err)
	}
	if res.Looks < 0 || res.Looks > MaxRepeats {
		return Results{}, fmt.Errorf("%s is damaged: it was looked at %d times", path, res.Looks)
	}
	if res.Repeats < 0 || res.Repeats > MaxRepeats {
		return Results{}, fmt.Errorf("%s is damaged: it has %d repeats", path, res.Repeats)
	}
	if res.Schema != Schema {
		return Results{}, fmt.Errorf("%s has schema %q, this program reads %q; use the version that wrote it", path, res.Schema, Schema)
	}
	return res, nil
}

// WriteResults writes the results file of a folder, atomically. An empty
// Schema is filled in.
func WriteResults(dir string, res Results) error {
	res.Schema = cmp.Or(res.Schema, Schema)
	data, err := json.MarshalIndent(res, "", "  ")
	if err != nil {
		return fmt.Errorf("the results cannot be stored: %w", err)
	}
	return WriteFile(filepath.Join(dir, ResultsFile), append(data, '\n'))
}

// WriteFile replaces a file atomically: readers see the old content or the
// new, and a failure leaves the old.
func WriteFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // which does nothing once it was renamed
	_, err = f.Write(data)
	if err := errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
