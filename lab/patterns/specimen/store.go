package specimen

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"
)

// Patient is what a look-up finds. Any of the lists may be empty.
type Patient struct {
	ID          string    `json:"id"`
	Record      string    `json:"medical_record_number"`
	FirstName   string    `json:"first_name"`
	LastName    string    `json:"last_name"`
	Born        time.Time `json:"date_of_birth"`
	Gender      string    `json:"gender"`
	Diagnoses   []string  `json:"diagnosis_codes,omitempty"`
	Medications []string  `json:"medications,omitempty"`
	Allergies   []string  `json:"allergies,omitempty"`
	LastVisit   time.Time `json:"last_visit_date"`
	Physician   string    `json:"primary_physician"`
	Insurer     string    `json:"insurance_provider"`
	BloodType   string    `json:"blood_type"`
}

// read sets the fields that a row has, as hand-written readers do.
func (p *Patient) read(row *Patient) {
	old := *p
	*p = *row
	for dst, last := range map[*[]string][]string{&p.Diagnoses: old.Diagnoses, &p.Medications: old.Medications, &p.Allergies: old.Allergies} {
		if len(*dst) == 0 {
			*dst = last
		}
	}
}

// ID returns the id of patient number n.
func ID(n int) string { return fmt.Sprintf("P%06d", n) }

// ErrStore is the error of a look-up that fails.
var ErrStore = errors.New("specimen: the store failed")

// Store finds patients.
type Store interface {
	Patient(id string) (*Patient, error)
}

// Simulated is the published store: it makes up a patient, after a uniform time and
// with a share of failures. The zero value is as fast as it can and never fails. Set the
// fields before use.
type Simulated struct {
	MinLatency, MaxLatency time.Duration
	Work                   func() // what a look-up computes, in place of that time; nil: nothing
	ErrorRate              float64
	Seed                   uint64

	mu         sync.Mutex
	rng        *rand.Rand
	busy, peak int
}

// Patient looks a patient up. The same id always finds the same patient.
func (s *Simulated) Patient(id string) (*Patient, error) {
	s.mu.Lock()
	if s.rng == nil {
		s.rng = rand.New(rand.NewPCG(s.Seed, 1))
	}
	latency := s.MinLatency + time.Duration(s.rng.Float64()*float64(s.MaxLatency-s.MinLatency))
	fails := s.rng.Float64() < s.ErrorRate
	s.busy++
	s.peak = max(s.peak, s.busy)
	s.mu.Unlock()
	err := s.take(latency)
	s.mu.Lock()
	s.busy--
	s.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case fails:
		return nil, ErrStore
	}
	return Made(id), nil
}

// take lets the time pass. Every published look-up has a time limit, of five seconds, which
// it makes for itself and never reaches.
func (s *Simulated) take(latency time.Duration) error {
	if s.Work != nil {
		s.Work()
	}
	if s.Work != nil || s.MaxLatency <= 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), latency+5*time.Second)
	defer cancel()
	select {
	case <-time.After(latency):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// PeakCalls returns the most look-ups that were under way at one time. Each would hold a
// connection for as long as it lasts.
func (s *Simulated) PeakCalls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peak
}

// Made makes up the patient with that id. One in two has something of each list.
func Made(id string) *Patient {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(id))
	bits := sum.Sum32()
	list := func(text string) []string {
		bits >>= 1
		if bits&1 == 0 {
			return nil
		}
		return []string{text + " of " + id}
	}
	return &Patient{ID: id, Record: "MRN-" + id, FirstName: "Mary", LastName: "Smith", Born: born, Gender: "Female",
		Diagnoses: list("diagnosis"), Medications: list("medication"), Allergies: list("allergy"),
		LastVisit: born.AddDate(60, 0, 0), Physician: "Dr. Chen", Insurer: "Medicare", BloodType: "A+"}
}

var born = time.Date(1950, 1, 2, 0, 0, 0, 0, time.UTC)
