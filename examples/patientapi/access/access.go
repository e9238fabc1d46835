// Package access says who may see what. Allowed is the whole of it: one pure function
// over roles, resources, actions and whose data it is. A Visit carries what it needs
// through a request.
package access

import "errors"

// ErrDenied reports that the caller may not do what was asked. It is the same for a
// patient who exists and for one who does not.
var ErrDenied = errors.New("access: denied")

// Role is the capacity in which a caller asks.
type Role string

// The roles. The zero Role may do nothing.
const (
	Clinician     Role = "clinician"
	Administrator Role = "administrator"
	ExportJob     Role = "export-job"
	Patient       Role = "patient" // sees the own record only
)

// Resource is what is asked for.
type Resource string

// The resources. Some have no operation of their own and are parts of a record alone, see
// front.Withhold.
const (
	Patients           Resource = "Patient"
	Observations       Resource = "Observation"
	MedicationRequests Resource = "MedicationRequest"
	Conditions         Resource = "Condition"
	Allergies          Resource = "AllergyIntolerance"
	Encounters         Resource = "Encounter"
	Coverages          Resource = "Coverage"
	Clinicians         Resource = "Clinician"
)

// Action is what is done with it.
type Action string

// The actions. Everything here only reads.
const (
	Read   Action = "read"   // one, by id
	Search Action = "search" // those that match
	Export Action = "export" // everything about one patient, as a stream

	ExportAll Action = "export-all" // everything about everybody, as a stream or by a job
)

// Principal is a caller whose identity is proved. The zero Principal may do nothing.
type Principal struct {
	Subject string   // as the issuer names it
	Role    Role     // one, never several
	Patient string   // whose record is the own one; only for the role Patient
	Scopes  []string // what the token is good for, such as user/Patient.rs; without any, for nothing
}
