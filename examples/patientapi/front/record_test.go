package front

import (
	"reflect"
	"slices"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/access"
)

// ofPatient are the fields of a record that are the Patient itself, or a part of the
// Patient in FHIR too. Every other field is one that Withhold knows.
var ofPatient = []string{"ID", "Identifiers", "Name", "BirthDate", "Gender", "Phone", "Address", "Version", "Updated"}

// A field that is added to the record and not to the table of its parts would be shown to
// every token that opens a Patient.
func TestEveryFieldOfARecordIsOpenedByOneScope(t *testing.T) {
	typ := reflect.TypeFor[patientapi.Patient]()
	withheldBy := map[string]int{}
	for _, part := range parts {
		p := full(t)
		before := reflect.ValueOf(*p)
		part.withhold(p)
		for i := range typ.NumField() {
			if !reflect.DeepEqual(before.Field(i).Interface(), reflect.ValueOf(*p).Field(i).Interface()) {
				withheldBy[typ.Field(i).Name]++
			}
		}
	}
	for field := range typ.Fields() {
		name, want := field.Name, 1
		if slices.Contains(ofPatient, name) {
			want = 0
		}
		if withheldBy[name] != want {
			t.Errorf("%s is withheld by %d parts, want %d: say in parts which resource it is", name, withheldBy[name], want)
		}
	}
}

// full is a record without an empty field.
func full(t *testing.T) *patientapi.Patient {
	t.Helper()
	p := new(patientapi.Patient)
	for n := 1; n <= 100; n++ {
		patientapi.Generator{Seed: 1}.Patient(n, p)
		v, empty := reflect.ValueOf(*p), 0
		for _, f := range v.Fields() {
			if f.IsZero() || f.Kind() == reflect.Slice && f.Len() == 0 {
				empty++
			}
		}
		if empty == 0 {
			return p
		}
	}
	t.Fatal("nobody has everything")
	return nil
}

func TestWhatIsWithheldDoesNotDependOnTheRecord(t *testing.T) {
	v := &access.Visit{
		Principal: access.Principal{Subject: "somebody", Role: access.Clinician, Scopes: []string{"user/Patient.r", "user/Condition.rs", "user/Encounter.r"}},
		Resource:  access.Patients, Action: access.Read,
	}
	want := []string{"AllergyIntolerance", "Coverage", "Encounter", "MedicationRequest", "Observation", "Practitioner"}
	for _, records := range [][]*patientapi.Patient{nil, {{}}, {full(t)}, {full(t), {}}} {
		if got := Withhold(v, records...); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	p := full(t)
	Withhold(v, p)
	if p.Diagnoses == nil || p.Visits != nil || p.Physician.Email != "" || p.Physician.ID == "" || p.BloodType != "" {
		t.Errorf("%d diagnoses, %d visits, a physician at %q, %q", len(p.Diagnoses), len(p.Visits), p.Physician.Email, p.BloodType)
	}
}
