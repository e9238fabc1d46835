package patientapi

import "fmt"

// Set names a set of generated people.
type Set struct {
	Patients int
	Seed     uint64
}

// Check reports a set that cannot be made.
func (s Set) Check() error {
	if s.Patients < 1 || s.Patients > MaxPatients {
		return fmt.Errorf("patientapi: %d patients: want 1 to %d", s.Patients, MaxPatients)
	}
	return nil
}

// Connections says how many connections to its database a store may use, and the most
// it needed at one time.
type Connections struct {
	Max  int `json:"max"`
	Open int `json:"open"`
	Peak int `json:"peak"`
}
