// Package accesstest has tokens for tests of what stands behind authentication. They are
// the names of roles, and one that is good for nothing.
package accesstest

import (
	"context"
	"errors"

	"github.com/spillway-go/spillway/examples/patientapi/access"
)

// Patient is whose record is that of the role patient.
const Patient = "P000001"

// Roles are the principals by their tokens.
var Roles = map[string]access.Principal{
	"clinician":     {Subject: "doctor-1", Role: access.Clinician, Scopes: []string{"user/*.rs"}},
	"administrator": {Subject: "office-1", Role: access.Administrator, Scopes: []string{"user/*.rs"}},
	"export-job":    {Subject: "export-1", Role: access.ExportJob, Scopes: []string{"system/*.rs"}},
	"patient":       {Subject: "patient-1", Role: access.Patient, Patient: Patient, Scopes: []string{"patient/*.rs"}},
	"no-scope":      {Subject: "doctor-2", Role: access.Clinician},
}

// Clinician is the value of an Authorization header that opens all patients.
const Clinician = "Bearer clinician"

// Verifier is a front.Verifier of those tokens.
type Verifier struct{}

// Verify returns the principal of that name.
func (Verifier) Verify(_ context.Context, token string) (access.Principal, error) {
	if p, ok := Roles[token]; ok {
		return p, nil
	}
	return access.Principal{}, errors.New("no such role")
}
