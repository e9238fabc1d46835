package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// SessionSchema names the layout of the results.json of several experiments.
const SessionSchema = "spillway/session/v1"

// Session is the outcome of several experiments that were run as one: the results.json
// of the folder above theirs.
type Session struct {
	Schema      string    `json:"schema"`
	Started     time.Time `json:"started"`
	Ended       time.Time `json:"ended,omitzero"` // zero: it goes on, or it was killed
	Machine     Machine   `json:"machine"`
	Revision    string    `json:"revision"` // of the lab
	Command     []string  `json:"command"`
	Seed        uint64    `json:"seed"`
	Size        string    `json:"size,omitempty"` // of the configurations
	Experiments []string  `json:"experiments"`    // that were asked for
	Parts       []Results `json:"parts"`          // those that were judged
	LeftOut     []LeftOut `json:"left_out,omitempty"`
	Advice      []Advice  `json:"advice,omitempty"`
}

// LeftOut is an experiment that was not run, and why.
type LeftOut struct {
	Experiment string `json:"experiment"`
	Why        string `json:"why"`
}

// Advice answers a question that an engineer has, as far as claims were decided.
type Advice struct {
	Question string `json:"question"`
	Text     string `json:"text"`
	Source   string `json:"source,omitempty"` // who advises it; empty: nobody but us
	Verdict  string `json:"verdict"`          // supported, contradicted, undecided or not judged, on this machine
	Cites    []Cite `json:"cites,omitempty"`  // what it rests on, of what was judged
}

// Cite is a claim, or a part of one, with what was found.
type Cite struct {
	Claim   string `json:"claim"` // "H2", or "H2/refused" for a part
	Verdict string `json:"verdict"`
	Figure  string `json:"figure,omitempty"` // with its interval
}

// String is "H2 fails, 97.1 % (96.8–97.5)".
func (c Cite) String() string {
	return strings.TrimSuffix(c.Claim+" "+c.Verdict+", "+c.Figure, ", ")
}

// ErrNoSession is matched by the error of a folder that holds no session of several
// experiments.
var ErrNoSession = errors.New("no session of several experiments")

// ReadSession reads the session of a folder.
func ReadSession(dir string) (s Session, err error) {
	path := filepath.Join(dir, ResultsFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return s, fmt.Errorf("%s holds %w: %w", dir, ErrNoSession, err)
	}
	if err := json.Unmarshal(data, &s); err != nil || s.Schema != SessionSchema {
		return s, fmt.Errorf("%s holds %w: its schema is %q, and this program reads %q", path, ErrNoSession, s.Schema, SessionSchema)
	}
	return s, nil
}

// WriteSession makes the folder if necessary and writes its results file, atomically.
func WriteSession(dir string, s Session) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("the results cannot be stored: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make the results folder: %w; choose another one", err)
	}
	return WriteFile(filepath.Join(dir, ResultsFile), append(data, '\n'))
}
