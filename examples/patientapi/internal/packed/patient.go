package packed

import (
	"errors"
	"strconv"

	"github.com/spillway-go/spillway/examples/patientapi"
)

// Patient is what a record of a patient has as lists.
type Patient struct{ Identifiers, Diagnoses, Medications, Allergies, Visits string }

// Append adds the lists to those of p.
func (l Patient) Append(p *patientapi.Patient) error {
	for r := range Rows(l.Identifiers) {
		p.Identifiers = append(p.Identifiers, patientapi.Identifier{System: r.Field(), Value: r.Field()})
	}
	for r := range Rows(l.Diagnoses) {
		p.Diagnoses = append(p.Diagnoses, patientapi.Diagnosis{Code: r.Field(), Text: r.Field(), Since: r.Field()})
	}
	for r := range Rows(l.Medications) {
		p.Medications = append(p.Medications, patientapi.Medication{Name: r.Field(), Dose: r.Field(), Since: r.Field()})
	}
	for r := range Rows(l.Allergies) {
		p.Allergies = append(p.Allergies, patientapi.Allergy{Substance: r.Field(), Reaction: r.Field(), Severity: r.Field()})
	}
	for r := range Rows(l.Visits) {
		v := patientapi.Visit{Date: r.Field(), Reason: r.Field()}
		clinician, err := strconv.Atoi(r.Field())
		if err != nil {
			return errors.New("the clinician of a visit is not a number")
		}
		v.Clinician = patientapi.ClinicianID(clinician)
		p.Visits = append(p.Visits, v)
	}
	return nil
}
