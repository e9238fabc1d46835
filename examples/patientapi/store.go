package patientapi

import "context"

// Store finds patients. It is safe for concurrent use. It fills memory that the
// caller owns, so that a caller who reuses memory can.
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

	// Ping reports whether the store can answer.
	Ping(ctx context.Context) error

	// Close releases what the store holds. No call may be under way.
	Close() error
}
