package results

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
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
// that already holds runs is refused with an error that is fs.ErrExist: runs of
// two sessions must not mix, and measurements are never overwritten.
func CreateRunLog(dir string) (*RunLog, error) {
	_, err := os.Stat(dir)
	made := errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the results folder: %w; choose another one", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, RunsFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s holds the runs of an earlier session; choose another folder or remove it: %w", dir, fs.ErrExist)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot write into the results folder: %w; choose another one", err)
	}
	return &RunLog{f, made}, nil
}

// ContinueRunLog goes on with the runs file of an earlier session. A last line that was
// cut off is removed.
func ContinueRunLog(dir string) (*RunLog, error) {
	path := filepath.Join(dir, RunsFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("there is no session in %s to go on with: %w", dir, err)
	}
	if whole := bytes.LastIndexByte(data, '\n') + 1; whole < len(data) {
		if err := os.Truncate(path, int64(whole)); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot write into the results folder: %w", err)
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
		for i := range run.Outcomes {
			run.Outcomes[i].Latency = cmp.Or(run.Outcomes[i].Latency, &histogram.Histogram{})
		}
		runs = append(runs, run)
	}
	return runs, false, nil
}

// Read reads the results of a folder. Partial says if the session was killed before its
// end, or the last run was cut off.
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
	switch {
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

func readResults(path string) (res Results, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Results{}, err
	}
	if err := json.Unmarshal(data, &res); err != nil {
		return Results{}, fmt.Errorf("%s is damaged: %w", path, err)
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
