// Package load is a load as text: a Spec is all that another process needs to send the
// same requests at the same times as this one, files included.
//
// The module around it is what spillway load, capacity and compare do: package agents sends one
// load from several processes, capacity searches for the knee, and compare says which of two is
// better. The laboratory uses what they stand on: judge, usage, chart, document and numbers.
package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Spec says what to send where, and when. Its JSON form holds secrets if a header does, and the key of a
// client certificate.
type Spec struct {
	URL     string   `json:"url"`
	Targets []Target `json:"targets,omitempty"` // in place of URL: requests that are sent in turn

	// One of these four says how much.
	Rate    float64         `json:"rate,omitempty"`    // requests a second of an open loop
	Profile string          `json:"profile,omitempty"` // legs, as loadgen.ParseLegs reads them
	Trace   []time.Duration `json:"trace_ns,omitempty"`
	Clients int             `json:"clients,omitempty"` // of a closed loop

	Poisson  bool          `json:"poisson,omitempty"`
	Duration time.Duration `json:"duration_ns,omitempty"`
	Requests uint64        `json:"requests,omitempty"`

	Method string      `json:"method,omitempty"`
	Header http.Header `json:"header,omitempty"`
	Body   []byte      `json:"body,omitempty"`
	HTTP2  bool        `json:"http2,omitempty"`
	Connection

	Redirects int `json:"redirects,omitempty"` // the most that one request follows

	Data       Rows    `json:"data,omitzero"`
	DataRandom bool    `json:"data_random,omitempty"`
	Mix        []Entry `json:"mix,omitempty"`

	Timeout     time.Duration `json:"timeout_ns,omitempty"` // of one request
	Interval    time.Duration `json:"interval_ns"`          // of the live view and the time line
	Seed        uint64        `json:"seed"`
	MaxInFlight int           `json:"max_in_flight"`
}

// Rows fill in placeholders.
type Rows struct {
	Format string `json:"format"` // csv or jsonl; empty: there are none
	Text   []byte `json:"text"`
}

// Entry is a kind of request in a mix.
type Entry struct {
	Class    string            `json:"class,omitempty"`
	Weight   *float64          `json:"weight,omitempty"`
	Priority string            `json:"priority,omitempty"`
	Path     string            `json:"path,omitempty"`
	Method   string            `json:"method,omitempty"`
	Headers  map[string]string `json:"headers,omitempty"`
	Body     string            `json:"body,omitempty"`
}

// ReadMix reads a list of entries. A field that there is not is an error.
func ReadMix(text []byte) (entries []Entry, err error) {
	if err := decodeOne(text, &entries); err != nil {
		return nil, fmt.Errorf("no list of requests: %w", err)
	}
	if len(entries) == 0 {
		return nil, errors.New("a list without requests")
	}
	return entries, nil
}

// ParseSpec reads the JSON form of a Spec. Plan checks what it says.
func ParseSpec(text []byte) (s Spec, err error) {
	if err := decodeOne(text, &s); err != nil {
		return Spec{}, fmt.Errorf("a load that this version does not know: %w", err)
	}
	return s, nil
}

// decodeOne decodes one value with nothing behind it.
func decodeOne(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff")))) // a byte order mark is no JSON
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("want one value and nothing behind it")
	}
	return nil
}
