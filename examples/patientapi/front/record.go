package front

import (
	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/access"
)

// parts are what a patient's record holds beside the Patient of FHIR, each with the
// resource whose scope opens it wherever it is shown. Of a clinician the id and the name
// are a part of the Patient, as in its generalPractitioner.
var parts = []struct {
	resource access.Resource
	withhold func(*patientapi.Patient)
}{
	{access.Allergies, func(p *patientapi.Patient) { p.Allergies = nil }},
	{access.Conditions, func(p *patientapi.Patient) { p.Diagnoses = nil }},
	{access.Coverages, func(p *patientapi.Patient) { p.Insurance = patientapi.Insurance{} }},
	{access.Encounters, func(p *patientapi.Patient) { p.Visits = nil }},
	{access.MedicationRequests, func(p *patientapi.Patient) { p.Medications = nil }},
	{access.Observations, func(p *patientapi.Patient) { p.BloodType = "" }},
	{access.Clinicians, func(p *patientapi.Patient) {
		p.Physician = patientapi.Clinician{ID: p.Physician.ID, Name: p.Physician.Name}
	}},
}

// Withhold clears the parts of those records that the caller may not see, and returns
// which parts these are, by the names that scopes have for them. That depends on the
// caller alone and not on what is in the records: an answer that has nothing of a part
// and one without the part are told apart, and by no more than that.
func Withhold(v *access.Visit, records ...*patientapi.Patient) (withheld []string) {
	for _, part := range parts {
		if v.Shows(part.resource) {
			continue
		}
		withheld = append(withheld, access.ScopeName(part.resource))
		for _, p := range records {
			part.withhold(p)
		}
	}
	return withheld
}
