package results

import (
	"bufio"
	"bytes"
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
	os.Remove(filepath.Join(filepath.Dir(l.f.Name()), SessionFile))
	if l.made {
		os.Remove(filepath.Dir(l.f.Name())) // unless something else is in it by now
	}
}

// ReadRuns reads one run a line. A last line that was cut off in the middle, as
// an interrupted program leaves it, is skipped and reported by cut; any other
// line that is not a run is an error.
func ReadRuns(r io.Reader) (runs []Run, cut bool, err error) {
	br := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, readErr := br.ReadBytes('\n')
		if readErr != nil && readErr != io.EOF {
			return runs, false, readErr
		}
		if len(bytes.TrimSpace(line)) > 0 {
			var run Run
			if err := json.Unmarshal(line, &run); err != nil {
				if readErr == io.EOF {
					return runs, true, nil
				}
				return runs, false, fmt.Errorf("line %d is not a run: %w", n, err)
			}
			for i := range run.Outcomes {
				if run.Outcomes[i].Latency == nil {
					run.Outcomes[i].Latency = &histogram.Histogram{}
				}
			}
			runs = append(runs, run)
		}
		if readErr == io.EOF {
			return runs, false, nil
		}
	}
}

// Read reads the results of a folder. Without a results file, because the session was
// killed before it was written, it takes what the session wrote at its start, and says
// so in Partial. A cut last run makes the results partial.
func Read(dir string) (Results, []Run, error) {
	f, err := os.Open(filepath.Join(dir, RunsFile))
	if err != nil {
		return Results{}, nil, fmt.Errorf("%s is not a results folder: %w", dir, err)
	}
	defer f.Close()
	runs, cut, err := ReadRuns(f)
	if err != nil {
		return Results{}, nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	res, err := readResults(filepath.Join(dir, ResultsFile))
	if errors.Is(err, fs.ErrNotExist) {
		res, err = readResults(filepath.Join(dir, SessionFile))
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s has runs but neither %s nor %s, so that nothing says what they are: %w", dir, ResultsFile, SessionFile, err)
		}
		res.Partial = fmt.Sprintf("the session was killed after %d runs", len(runs))
		if len(runs) > 0 {
			last := runs[len(runs)-1]
			res.Ended = last.Started.Add(time.Duration(last.Elapsed * float64(time.Second)))
		}
	}
	if cut && res.Partial == "" {
		res.Partial = "the last run was cut off while it was written"
	}
	return res, Latest(runs), err
}

func readResults(path string) (Results, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Results{}, err
	}
	var res Results
	if err := json.Unmarshal(data, &res); err != nil {
		return Results{}, fmt.Errorf("%s is damaged: %w", path, err)
	}
	if res.Schema != Schema {
		return Results{}, fmt.Errorf("%s has schema %q, this program reads %q; use the version that wrote it", path, res.Schema, Schema)
	}
	return res, nil
}

// WriteSession writes what is known at the start of a session.
func WriteSession(dir string, res Results) error { return write(dir, SessionFile, res) }

// WriteResults writes the results file of a folder, atomically. An empty
// Schema is filled in.
func WriteResults(dir string, res Results) error { return write(dir, ResultsFile, res) }

func write(dir, name string, res Results) error {
	if res.Schema == "" {
		res.Schema = Schema
	}
	data, err := json.MarshalIndent(res, "", "  ")
	if err != nil {
		return fmt.Errorf("the results cannot be stored: %w", err)
	}
	return WriteFile(filepath.Join(dir, name), append(data, '\n'))
}

// WriteFile replaces a file atomically: readers see the old content or the
// new, and a failure leaves the old.
func WriteFile(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
