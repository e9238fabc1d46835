// Package patientapi holds the words of a patient service: patients, the
// clinicians who look after them, and the Store that finds them. Each folder
// beside it implements one technology; app wires them.
//
// Everybody in it is invented. See Generator.
package patientapi

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// ErrNotFound reports a well-formed id that belongs to nobody.
var ErrNotFound = errors.New("patientapi: no such patient")

// ErrMalformedID reports an id that could belong to nobody.
var ErrMalformedID = errors.New("patientapi: malformed patient id: want P and six digits, such as P000042")

// ErrUnavailable reports a store that could not answer.
var ErrUnavailable = errors.New("patientapi: the patient store is unavailable")

// MaxPatients is how many patients an id can tell apart.
const MaxPatients = 999_999

const idLength = len("P000042")

// FormatID returns the id of patient number n, from 1 to MaxPatients.
func FormatID(n int) string { return fmt.Sprintf("P%06d", n) }

// ParseID returns the number in a patient id, or ErrMalformedID. Number 0 is
// well-formed and belongs to nobody.
func ParseID(id string) (int, error) {
	if len(id) != idLength || id[0] != 'P' {
		return 0, ErrMalformedID
	}
	n := 0
	for _, c := range []byte(id[1:]) {
		if c < '0' || c > '9' {
			return 0, ErrMalformedID
		}
		n = n*10 + int(c-'0')
	}
	return n, nil
}

// Patient is a patient with all that a clinician asks for at once. Dates are
// written as 2006-01-02. Logging a Patient shows nothing about the person.
type Patient struct {
	ID          string       `json:"id"`
	Identifiers []Identifier `json:"identifiers,omitempty"`
	Name        Name         `json:"name"`
	BirthDate   string       `json:"birth_date"`
	Gender      string       `json:"gender"` // female, male, other or unknown
	BloodType   string       `json:"blood_type"`
	Phone       string       `json:"phone"`
	Address     Address      `json:"address"`
	Physician   Clinician    `json:"physician"`
	Insurance   Insurance    `json:"insurance"`
	Diagnoses   []Diagnosis  `json:"diagnoses,omitempty"`
	Medications []Medication `json:"medications,omitempty"`
	Allergies   []Allergy    `json:"allergies,omitempty"`
	Visits      []Visit      `json:"visits,omitempty"`

	Version int64     `json:"version"` // counts changes of the record, from 1
	Updated time.Time `json:"updated"` // of the last change, in UTC, to the second
}

// Identifier is a number by which some register knows the patient.
type Identifier struct {
	System string `json:"system"`
	Value  string `json:"value"`
}

// Name is a person's name.
type Name struct {
	Given  string `json:"given"`
	Family string `json:"family"`
}

// Address is where a person lives.
type Address struct {
	Street   string `json:"street"`
	City     string `json:"city"`
	Postcode string `json:"postcode"`
}

// Insurance is who pays, and under which policy.
type Insurance struct {
	Insurer string `json:"insurer"`
	Policy  string `json:"policy"`
}

// Diagnosis is a condition. Codes are of an invented catalogue.
type Diagnosis struct {
	Code  string `json:"code"`
	Text  string `json:"text"`
	Since string `json:"since"`
}

// Medication is something the patient takes.
type Medication struct {
	Name  string `json:"name"`
	Dose  string `json:"dose"`
	Since string `json:"since"`
}

// Allergy is something the patient must not get.
type Allergy struct {
	Substance string `json:"substance"`
	Reaction  string `json:"reaction"`
	Severity  string `json:"severity"` // mild, moderate or severe
}

// Visit is one encounter with a clinician.
type Visit struct {
	Date      string `json:"date"`
	Reason    string `json:"reason"`
	Clinician string `json:"clinician"` // a Clinician's ID
}

// Clear makes p an empty patient that keeps its memory. Every element of its
// lists is zeroed, up to the capacity: nothing of the person is left to reach
// the next one.
func (p *Patient) Clear() {
	*p = Patient{
		Identifiers: empty(p.Identifiers),
		Diagnoses:   empty(p.Diagnoses),
		Medications: empty(p.Medications),
		Allergies:   empty(p.Allergies),
		Visits:      empty(p.Visits),
	}
}

func empty[T any](s []T) []T {
	clear(s[:cap(s)])
	return s[:0]
}

// LogValue hides the patient from logs.
func (Patient) LogValue() slog.Value { return slog.StringValue(redacted) }

// String hides the patient from everything that formats it.
func (Patient) String() string { return redacted }

// GoString hides the patient from everything that formats it.
func (Patient) GoString() string { return redacted }

const redacted = "patient (redacted)"

// Batch is the answer to a question about many patients: those found, in the
// order in which they were asked for, and the ids that belong to nobody.
type Batch struct {
	Patients []Patient `json:"patients"`
	Missing  []string  `json:"missing"`
}

// Next appends an empty patient and returns it to be filled. It uses the memory
// of a patient that Clear left behind, if there is one. The pointer is valid
// until the next call.
func (b *Batch) Next() *Patient {
	if n := len(b.Patients); n < cap(b.Patients) {
		b.Patients = b.Patients[:n+1]
	} else {
		b.Patients = append(b.Patients, Patient{})
	}
	return &b.Patients[len(b.Patients)-1]
}

// Clear makes b an empty batch that keeps its memory, and its patients' memory.
// Its lists are empty afterwards, never nil: their JSON form is [].
func (b *Batch) Clear() {
	all := b.Patients[:cap(b.Patients)]
	for i := range all {
		all[i].Clear()
	}
	b.Patients = all[:0]
	b.Missing = empty(b.Missing)
	if b.Patients == nil {
		b.Patients = []Patient{}
	}
	if b.Missing == nil {
		b.Missing = []string{}
	}
}

// LogValue hides the patients from logs and says how many there are.
func (b Batch) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("patients", len(b.Patients)), slog.Int("missing", len(b.Missing)))
}

// String hides the patients from everything that formats the batch.
func (b Batch) String() string {
	return fmt.Sprintf("%d patients (redacted), %d missing", len(b.Patients), len(b.Missing))
}

// GoString hides the patients from everything that formats the batch.
func (b Batch) GoString() string { return b.String() }
