package specimen

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"
)

// Patient is what a look-up finds. Any of the lists may be empty.
type Patient struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Diagnoses   []string `json:"diagnoses,omitempty"`
	Medications []string `json:"medications,omitempty"`
	Allergies   []string `json:"allergies,omitempty"`
}

// read sets the fields that a row has, as hand-written readers do.
func (p *Patient) read(row *Patient) {
	p.ID, p.Name = row.ID, row.Name
	for dst, now := range map[*[]string][]string{&p.Diagnoses: row.Diagnoses, &p.Medications: row.Medications, &p.Allergies: row.Allergies} {
		if len(now) > 0 {
			*dst = now
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
	if s.Work != nil {
		s.Work()
	} else {
		time.Sleep(latency)
	}
	s.mu.Lock()
	s.busy--
	s.mu.Unlock()
	if fails {
		return nil, ErrStore
	}
	return Made(id), nil
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
	return &Patient{ID: id, Name: "Name of " + id, Diagnoses: list("diagnosis"), Medications: list("medication"), Allergies: list("allergy")}
}
