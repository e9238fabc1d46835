package patientapi

import "context"

// Store finds patients and clinicians. It is safe for concurrent use. It fills
// memory that the caller owns, so that a caller who reuses memory can. Errors say
// nothing about the people asked for: they are logged.
type Store interface {
	// Patient fills dst with the patient of that id. Whatever dst held before
	// is cleared first, also when an error is returned: ErrMalformedID,
	// ErrNotFound, the context's error, or another when the store failed. When
	// Patient has returned, the store holds nothing of dst.
	Patient(ctx context.Context, id string, dst *Patient) error

	// Patients fills dst with the patients of those ids, in that order, and
	// lists the ids that belong to nobody as missing. It is one question to the
	// store. One malformed id fails the whole with ErrMalformedID.
	Patients(ctx context.Context, ids []string, dst *Batch) error

	// Clinicians returns those whom that question asks for, by id; nobody is not
	// an error. The slice is the caller's.
	Clinicians(ctx context.Context, q ClinicianQuery) ([]Clinician, error)

	// Ping reports whether the store can answer.
	Ping(ctx context.Context) error

	// Close releases what the store holds. No call may be under way.
	Close() error
}

// ClinicianCache remembers for a while what a Store answered. It is safe for
// concurrent use. It holds people's data, so whatever it keeps it forgets by
// itself. Errors say nothing about the people asked for.
type ClinicianCache interface {
	// Clinicians returns what was kept for that question, and nobody when
	// nothing was. The slice is the caller's.
	Clinicians(ctx context.Context, q ClinicianQuery) ([]Clinician, error)

	// Keep replaces what is kept for that question. It holds nothing of found
	// when it has returned.
	Keep(ctx context.Context, q ClinicianQuery, found []Clinician) error

	// Close releases what the cache holds. No call may be under way.
	Close() error
}
