package access

import (
	"slices"
	"strings"
	"testing"
)

// allowed is what each role may do, written down without a look at the code: resources, the
// actions, and whose data they may be about. Everything else is denied.
const allowed = `
clinician     | Patient Observation MedicationRequest Condition AllergyIntolerance Encounter Coverage | read search export       | own other any
clinician     | Clinician                                                                             | read search              | own other any
administrator | Clinician                                                                             | read search              | own other any
export-job    | Patient Observation MedicationRequest Condition AllergyIntolerance Encounter Coverage | search export export-all | own other any
patient       | Patient Observation MedicationRequest Condition AllergyIntolerance Encounter Coverage | read search export       | own any
`

var (
	roles     = []Role{"", Clinician, Administrator, ExportJob, Patient, "CLINICIAN", "root"}
	resources = []Resource{"", Patients, Observations, MedicationRequests, Conditions, Allergies, Encounters, Coverages, Clinicians, "*", "Procedure"}
	actions   = []Action{"", Read, Search, Export, ExportAll, "write"}
	whose     = map[string]string{"own": "P000001", "other": "P000002", "any": ""}
	every     = []string{"user/*.cruds", "patient/*.cruds", "system/*.cruds"}
)

func TestMatrix(t *testing.T) {
	want := map[string]bool{}
	for line := range strings.Lines(strings.TrimSpace(allowed)) {
		parts := strings.Split(line, "|")
		for resource := range strings.FieldsSeq(parts[1]) {
			for action := range strings.FieldsSeq(parts[2]) {
				for id := range strings.FieldsSeq(parts[3]) {
					want[strings.Join([]string{strings.TrimSpace(parts[0]), resource, action, id}, " ")] = true
				}
			}
		}
	}
	found := 0
	for _, role := range roles {
		for _, resource := range resources {
			for _, action := range actions {
				for word, id := range whose {
					p := Principal{Subject: "somebody", Role: role, Patient: "P000001", Scopes: every}
					question := strings.Join([]string{string(role), string(resource), string(action), word}, " ")
					got := Allowed(p, resource, action, id)
					if got != want[question] {
						t.Errorf("%s: %v", question, got)
					}
					if p.Scopes = nil; Allowed(p, resource, action, id) {
						t.Errorf("%s is allowed to a token without a scope", question)
					}
					if got {
						found++
					}
				}
			}
		}
	}
	if found != len(want) {
		t.Errorf("%d of %d lines were asked for", found, len(want))
	}
}

// The scopes that a role gets by default are enough for all that it may do.
func TestScopesOfRoles(t *testing.T) {
	if all := Roles(); !slices.Equal(all, []Role{Clinician, Administrator, ExportJob, Patient}) {
		t.Errorf("%v", all)
	}
	for _, role := range Roles() {
		full := Principal{Subject: "somebody", Role: role, Patient: "P000001", Scopes: every}
		usual := full
		usual.Scopes = Scopes(role)
		for _, r := range resources {
			for _, a := range actions {
				if Allowed(full, r, a, "P000001") != Allowed(usual, r, a, "P000001") {
					t.Errorf("%s %s %s takes more than %v", role, r, a, usual.Scopes)
				}
			}
		}
	}
	if s := Scopes("root"); s != nil {
		t.Errorf("%v", s)
	}
}

func TestScopesNarrowWhatTheRoleMay(t *testing.T) {
	for _, c := range []struct {
		role     Role
		scopes   string
		resource Resource
		action   Action
		want     bool
	}{
		{Clinician, "user/Observation.rs", Patients, Read, false},
		{Clinician, "openid fhirUser launch user/*.rs", Patients, Read, true},
		{Clinician, "user/Patient.r", Patients, Read, true},
		{Clinician, "user/Patient.r", Patients, Search, false},
		{Clinician, "user/Patient.s", Patients, Read, false},
		{Clinician, "user/Patient.r", Patients, Export, false},
		{Clinician, "user/Patient.r user/Patient.s", Patients, Export, true},
		{Clinician, "user/Patient.r user/Observation.s", Patients, Export, false},
		{Clinician, "user/Patient.read", Patients, Search, true}, // of the first version
		{Clinician, "user/Patient.cud", Patients, Read, false},
		{Clinician, "user/Practitioner.rs", Clinicians, Search, true},
		{Clinician, "user/Clinician.rs", Clinicians, Search, false}, // FHIR has no such resource
		{Clinician, "patient/Patient.rs", Patients, Read, false},
		{ExportJob, "system/Patient.rs", Patients, ExportAll, true},
		{ExportJob, "user/*.rs", Patients, ExportAll, false},
		{Patient, "patient/Patient.rs", Patients, Read, true},
		{Patient, "user/Patient.rs", Patients, Read, false},
		{Administrator, "user/*.cruds", Patients, Read, false},
		{Clinician, "user/Patient.rs?_id=P000001", Patients, Read, false}, // less than it looks
		{Clinician, "user/Patient.sr", Patients, Read, false},
		{Clinician, "user/**.rs", Patients, Read, false},
		{Clinician, "*/*.*", Patients, Read, false},
		{Clinician, "", Patients, Read, false},
	} {
		p := Principal{Subject: "somebody", Role: c.role, Patient: "P000001", Scopes: strings.Fields(c.scopes)}
		if got := Allowed(p, c.resource, c.action, "P000001"); got != c.want {
			t.Errorf("%s with %q: %s %s: %v", c.role, c.scopes, c.resource, c.action, got)
		}
		if opens := slices.ContainsFunc(p.Scopes, func(s string) bool { return Opens(c.role, s) }); c.want && !opens {
			t.Errorf("%q opens %s to %s, and Opens does not know", c.scopes, c.resource, c.role)
		}
	}
}
