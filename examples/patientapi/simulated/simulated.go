// Package simulated is a patient store without a database: it makes each patient
// when asked for it. Around any store, Inject adds the latency and the failures
// of a database far away.
package simulated

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spillway-go/spillway/examples/patientapi"
)

// Store answers from the generator. It holds no patient, only clinicians and what a
// search compares, and never fails.
type Store struct {
	gen      patientapi.Generator
	patients int
	reached  func() map[patientapi.ClinicianQuery][]patientapi.Clinician // made when first asked for
	cards    []func() []card                                             // made when a search first comes by
}

// New returns a store of that many patients, numbered from 1.
func New(patients int, seed uint64) (*Store, error) {
	if patients < 1 || patients > patientapi.MaxPatients {
		return nil, fmt.Errorf("simulated: %d patients: want 1 to %d", patients, patientapi.MaxPatients)
	}
	gen := patientapi.Generator{Seed: seed}
	s := &Store{gen: gen, patients: patients}
	s.reached = sync.OnceValue(func() map[patientapi.ClinicianQuery][]patientapi.Clinician { return reached(gen) })
	for first := 1; first <= patients; first += drawer {
		s.cards = append(s.cards, sync.OnceValue(func() []card { return cards(gen, first, min(first+drawer-1, patients)) }))
	}
	return s, nil
}

// reached lists the clinicians by the questions that find them.
func reached(gen patientapi.Generator) map[patientapi.ClinicianQuery][]patientapi.Clinician {
	by := map[patientapi.ClinicianQuery][]patientapi.Clinician{}
	for n := 1; n <= patientapi.Clinicians; n++ {
		c := gen.Clinician(n)
		for _, email := range c.Mailboxes() {
			q := patientapi.ClinicianQuery{Email: email, Organisation: strings.ToLower(c.Organisation)}
			by[q] = append(by[q], c)
		}
	}
	return by
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

// Observations implements patientapi.Store.
func (s *Store) Observations(ctx context.Context, id string) ([]patientapi.Observation, error) {
	n, err := patientapi.ParseID(id)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil || n < 1 || n > s.patients {
		return nil, err
	}
	return s.gen.Observations(n), nil
}

// Clinicians implements patientapi.Store.
func (s *Store) Clinicians(ctx context.Context, q patientapi.ClinicianQuery) ([]patientapi.Clinician, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return slices.Clone(s.reached()[q]), nil
}

// Ping implements patientapi.Store: it always answers.
func (s *Store) Ping(context.Context) error { return nil }

// Close implements io.Closer: there is nothing to release.
func (s *Store) Close() error { return nil }
