package patientapi

import (
	"context"
	"log/slog"
	"math"
	"time"
)

// MaxSearch is the most patients on one Page.
const MaxSearch = 500

// PatientSearch asks for patients. Every condition that is set must hold; a search
// without conditions finds everybody. Results come in the order of ids, a page at a
// time.
type PatientSearch struct {
	IDs        []string   // one of these; nil: any
	Identifier Identifier // an empty System matches every system, an empty Value every value of the System; both empty: any
	Name       string     // the given or the family name begins with it, whatever the case of A to Z
	Also       []Also     // must hold, too
	Birth      Dates
	Updated    Times
	After      string // the id before the first of the page; empty: from the start
	Limit      int    // most patients on the page; outside of 1 to MaxSearch, it is MaxSearch
}

// Also is a further identifier or name of the same patient, as in PatientSearch; what is
// empty holds.
type Also struct {
	Identifier Identifier
	Name       string
}

// Every returns all conditions on identifiers and names.
func (q PatientSearch) Every() []Also {
	return append([]Also{{q.Identifier, q.Name}}, q.Also...)
}

// PageSize returns the most patients that the page may hold, from 1 to MaxSearch.
func (q PatientSearch) PageSize() int {
	if q.Limit < 1 || q.Limit > MaxSearch {
		return MaxSearch
	}
	return q.Limit
}

// Numbers returns what stand in IDs and in After, or ErrMalformedID. Without After it is 0.
func (q PatientSearch) Numbers() (ids []int, after int, err error) {
	if q.After != "" {
		if after, err = ParseID(q.After); err != nil {
			return nil, 0, err
		}
	}
	ids = make([]int, len(q.IDs))
	for i, id := range q.IDs {
		if ids[i], err = ParseID(id); err != nil {
			return nil, 0, err
		}
	}
	return ids, after, nil
}

// FoldName returns name as a search compares it: the case of A to Z is ignored, and of
// no other letter.
func FoldName(name string) string { return lower(name) }

// LogValue hides the person asked for from logs.
func (PatientSearch) LogValue() slog.Value { return slog.StringValue(redactedSearch) }

// String hides the person asked for from everything that formats the search.
func (PatientSearch) String() string { return redactedSearch }

// GoString hides the person asked for from everything that formats the search.
func (PatientSearch) GoString() string { return redactedSearch }

const redactedSearch = "patient search (redacted)"

// Dates are the days from First to Last, both included, written as 2006-01-02 and
// days of the calendar: a store does not check. An empty end is open.
type Dates struct{ First, Last string }

// Times are the moments from Since, included, to Before, excluded. A zero end is open.
type Times struct{ Since, Before time.Time }

// Seconds returns the ends in seconds since 1970, for times that have no parts of
// seconds: an open end is as far away as can be.
func (t Times) Seconds() (since, before int64) {
	return up(t.Since, math.MinInt64), up(t.Before, math.MaxInt64)
}

// up returns t in seconds, a part of one counted as a whole.
func up(t time.Time, open int64) int64 {
	switch {
	case t.IsZero():
		return open
	case t.Nanosecond() > 0:
		return t.Unix() + 1
	}
	return t.Unix()
}

// Page is a part of what a search found.
type Page struct {
	Patients []Patient
	More     bool // there are patients after the last of these
}

// Next appends an empty patient and returns it to be filled. It uses the memory
// of a patient that Clear left behind, if there is one. The pointer is valid
// until the next call.
func (p *Page) Next() *Patient {
	b := Batch{Patients: p.Patients}
	next := b.Next()
	p.Patients = b.Patients
	return next
}

// Clear makes p an empty page that keeps its memory, and its patients' memory.
func (p *Page) Clear() {
	b := Batch{Patients: p.Patients}
	b.Clear()
	p.Patients, p.More = b.Patients, false
}

// LogValue hides the patients from logs.
func (p Page) LogValue() slog.Value { return Batch{Patients: p.Patients}.LogValue() }

// String hides the patients from everything that formats the page.
func (p Page) String() string { return Batch{Patients: p.Patients}.String() }

// GoString hides the patients from everything that formats the page.
func (p Page) GoString() string { return p.String() }

// Observation is something that was measured of a patient. Logging one shows nothing.
type Observation struct {
	Patient string    // the patient's id
	Number  int       // counts the patient's observations, from 1
	Code    string    // of LOINC, such as 8867-4
	Text    string    // such as heart rate
	Value   float64   // in Unit
	Unit    string    // of UCUM, such as /min
	Time    time.Time // when it was measured, in UTC, to the second
	Version int64     // counts changes of the record, from 1
	Updated time.Time // of the last change, in UTC, to the second
}

// LogValue hides the patient from logs.
func (Observation) LogValue() slog.Value { return slog.StringValue(redactedObservation) }

// String hides the patient from everything that formats the observation.
func (Observation) String() string { return redactedObservation }

// GoString hides the patient from everything that formats the observation.
func (Observation) GoString() string { return redactedObservation }

const redactedObservation = "observation (redacted)"

// Store is what every patient store can do. It is safe for concurrent use. Its errors
// are logged, so they say nothing about the people asked for: ErrMalformedID,
// ErrNotFound, the context's error, or one that matches ErrUnavailable.
//
// Patient, Patients and Search fill memory that the caller owns. Whatever it held is
// cleared first, also when an error is returned; when they have returned, the store
// holds nothing of it.
type Store interface {
	// Patient fills dst with the patient of that id, or returns ErrNotFound.
	Patient(ctx context.Context, id string, dst *Patient) error

	// Patients fills dst with the patients of those ids, in that order, and lists the
	// ids without a patient as missing. It is one question to the store. One malformed
	// id fails the whole.
	Patients(ctx context.Context, ids []string, dst *Batch) error

	// Search fills dst with the next patients that q asks for. It is one question to the
	// store. A malformed id in q is an error; one that belongs to nobody finds nobody.
	Search(ctx context.Context, q PatientSearch, dst *Page) error

	// Count returns how many patients q asks for, whatever its After and Limit are. It is
	// one question to the store, and its errors are those of Search.
	Count(ctx context.Context, q PatientSearch) (int, error)

	// Observations returns those of one patient, ordered by Number; none for a patient
	// who has none, and for an id that belongs to nobody.
	Observations(ctx context.Context, id string) ([]Observation, error)

	// Clinicians returns those who are reached as q says, ordered by id.
	Clinicians(ctx context.Context, q ClinicianQuery) ([]Clinician, error)

	// Ping reports whether the store can answer.
	Ping(ctx context.Context) error
}
