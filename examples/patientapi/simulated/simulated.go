// Package simulated is a patient store without a database: it makes each patient
// when asked for it. Around any store, Inject adds the latency and the failures
// of a database far away.
package simulated

import (
	"context"
	"fmt"

	"github.com/spillway-go/spillway/examples/patientapi"
)

// Store answers from the generator. It holds no patient and never fails.
type Store struct {
	gen      patientapi.Generator
	patients int
}

// New returns a store of that many patients, numbered from 1.
func New(patients int, seed uint64) (*Store, error) {
	if patients < 1 || patients > patientapi.MaxPatients {
		return nil, fmt.Errorf("simulated: %d patients: want 1 to %d", patients, patientapi.MaxPatients)
	}
	return &Store{patientapi.Generator{Seed: seed}, patients}, nil
}

// Patient implements patientapi.Store.
func (s *Store) Patient(ctx context.Context, id string, dst *patientapi.Patient) error {
	dst.Clear()
	n, err := patientapi.ParseID(id)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if n < 1 || n > s.patients {
		return patientapi.ErrNotFound
	}
	s.gen.Patient(n, dst)
	return nil
}

// Patients implements patientapi.Store.
func (s *Store) Patients(ctx context.Context, ids []string, dst *patientapi.Batch) error {
	dst.Clear()
	for _, id := range ids {
		if _, err := patientapi.ParseID(id); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, id := range ids {
		if n, _ := patientapi.ParseID(id); n >= 1 && n <= s.patients {
			s.gen.Patient(n, dst.Next())
		} else {
			dst.Missing = append(dst.Missing, id)
		}
	}
	return nil
}

// Ping implements patientapi.Store: it always answers.
func (s *Store) Ping(context.Context) error { return nil }

// Close implements patientapi.Store: there is nothing to release.
func (s *Store) Close() error { return nil }
