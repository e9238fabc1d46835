package fhir

import (
	"slices"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi/internal/accesstest"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
)

func TestAPatientFindsTheOwnRecordAlone(t *testing.T) {
	api := newAPI(t, newStore(t), patterns.Limiter)
	const self = "Bearer patient"
	for _, target := range []string{"/fhir/Patient", "/fhir/Patient?_id=" + accesstest.Patient, "/fhir/Patient?birthdate=ge1900", "/fhir/Patient?_id=" + accesstest.Patient + ",x"} {
		if a := get(t, api, target, "Authorization", self); a.Code != 200 || !slices.Equal(a.ids(), []string{accesstest.Patient}) {
			t.Errorf("%s: %d %s", target, a.Code, a.Body)
		}
	}
	for _, target := range []string{"/fhir/Patient?_id=x", "/fhir/Patient?birthdate=lt1900", "/fhir/Observation?patient=x"} {
		if a := get(t, api, target, "Authorization", self); a.Code != 200 || len(a.Entry) != 0 {
			t.Errorf("%s: %d %s", target, a.Code, a.Body)
		}
	}
	// In FHIR a comma means or. It is not supported here, and was answered as if nothing were known.
	for _, target := range []string{"/fhir/Observation?patient=P000001,P000002", "/fhir/MedicationRequest?patient=x,P000001"} {
		if a := get(t, api, target, "Authorization", self); a.Code != 400 {
			t.Errorf("%s: %d %s", target, a.Code, a.Body)
		}
	}
	for _, target := range []string{"/fhir/Patient/P000001", "/fhir/Observation/P000001-o1", "/fhir/Patient/P000001/$everything", "/fhir/MedicationRequest?patient=P000001"} {
		if a := get(t, api, target, "Authorization", self); a.Code != 200 {
			t.Errorf("%s: %d %s", target, a.Code, a.Body)
		}
	}
}
