// Package load is a load as the command line describes it: a Spec, and the Plan that can be run.
//
// The module around it is what spillway load, capacity and compare do: package capacity searches
// for the knee, and compare says which of two is better. The laboratory uses what they stand on:
// judge, usage, chart, document and numbers.
package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spillway-go/spillway/load/loadgen"
)

// Spec says what to send where, and when.
type Spec struct {
	Request loadgen.HTTPConfig // what is said about every request
	Targets []Target           // in place of the URL of Request: requests that are sent in turn
	Mix     []Entry

	// One of these four says how much.
	Rate    float64 // requests a second of an open loop
	Profile string  // legs, as loadgen.ParseLegs reads them
	Trace   []time.Duration
	Clients int // of a closed loop

	Poisson  bool
	Duration time.Duration
	Requests uint64

	Interval    time.Duration // of the live view and the time line
	Seed        uint64
	MaxInFlight int
}

// Entry is a kind of request in a mix.
type Entry struct {
	Class    string            `json:"class"`
	Weight   *float64          `json:"weight"`
	Priority string            `json:"priority"`
	Path     string            `json:"path"`
	Method   string            `json:"method"`
	Headers  map[string]string `json:"headers"`
	Body     string            `json:"body"`
}

// ReadMix reads a list of entries. A field that there is not is an error.
func ReadMix(text []byte) (entries []Entry, err error) {
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff")))) // a byte order mark is no JSON
	d.DisallowUnknownFields()
	err = d.Decode(&entries)
	if err == nil {
		if _, end := d.Token(); end != io.EOF {
			err = errors.New("want one value and nothing behind it")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("no list of requests: %w", err)
	}
	if len(entries) == 0 {
		return nil, errors.New("a list without requests")
	}
	return entries, nil
}
