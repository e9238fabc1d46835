package access

import (
	"slices"
	"strings"
	"testing"
)

// allowed is what each role may do, written down without a look at the code: for a
// resource the actions, and whose data they may be about. Everything else is denied.
const allowed = `
clinician     Patient           read       own other any
clinician     Patient           search     own other any
clinician     Patient           export     own other any
clinician     Observation       read       own other any
clinician     Observation       search     own other any
clinician     Observation       export     own other any
clinician     MedicationRequest read       own other any
clinician     MedicationRequest search     own other any
clinician     MedicationRequest export     own other any
clinician     Condition          read       own other any
clinician     Condition          search     own other any
clinician     Condition          export     own other any
clinician     AllergyIntolerance read       own other any
clinician     AllergyIntolerance search     own other any
clinician     AllergyIntolerance export     own other any
clinician     Encounter          read       own other any
clinician     Encounter          search     own other any
clinician     Encounter          export     own other any
clinician     Coverage           read       own other any
clinician     Coverage           search     own other any
clinician     Coverage           export     own other any
clinician     Clinician         read       own other any
clinician     Clinician         search     own other any
administrator Clinician         read       own other any
administrator Clinician         search     own other any
export-job    Patient           search     own other any
export-job    Patient           export     own other any
export-job    Patient           export-all own other any
export-job    Observation       search     own other any
export-job    Observation       export     own other any
export-job    Observation       export-all own other any
export-job    MedicationRequest search     own other any
export-job    MedicationRequest export     own other any
export-job    MedicationRequest export-all own other any
export-job    Condition          search     own other any
export-job    Condition          export     own other any
export-job    Condition          export-all own other any
export-job    AllergyIntolerance search     own other any
export-job    AllergyIntolerance export     own other any
export-job    AllergyIntolerance export-all own other any
export-job    Encounter          search     own other any
export-job    Encounter          export     own other any
export-job    Encounter          export-all own other any
export-job    Coverage           search     own other any
export-job    Coverage           export     own other any
export-job    Coverage           export-all own other any
patient       Patient           read       own any
patient       Patient           search     own any
patient       Patient           export     own any
patient       Observation       read       own any
patient       Observation       search     own any
patient       Observation       export     own any
patient       MedicationRequest read       own any
patient       MedicationRequest search     own any
patient       MedicationRequest export     own any
patient       Condition          read       own any
patient       Condition          search     own any
patient       Condition          export     own any
patient       AllergyIntolerance read       own any
patient       AllergyIntolerance search     own any
patient       AllergyIntolerance export     own any
patient       Encounter          read       own any
patient       Encounter          search     own any
patient       Encounter          export     own any
patient       Coverage           read       own any
patient       Coverage           search     own any
patient       Coverage           export     own any
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
	for line := range strings.Lines(allowed) {
		if words := strings.Fields(line); len(words) > 0 {
			for _, w := range words[3:] {
				want[strings.Join(append(slices.Clone(words[:3]), w), " ")] = true
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

func TestAPatientWithoutARecordMayDoNothing(t *testing.T) {
	p := Principal{Subject: "somebody", Role: Patient, Scopes: every}
	for _, id := range []string{"", "P000001"} {
		if Allowed(p, Patients, Read, id) {
			t.Errorf("allowed with %q", id)
		}
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
		{Clinician, "user/Observation.rs", Observations, Read, true},
		{Clinician, "user/Observation.rs", Patients, Read, false},
		{Clinician, "user/*.rs", Patients, Read, true},
		{Clinician, "openid fhirUser launch user/*.rs", Patients, Read, true},
		{Clinician, "user/Patient.r", Patients, Read, true},
		{Clinician, "user/Patient.r", Patients, Search, false},
		{Clinician, "user/Patient.s", Patients, Read, false},
		{Clinician, "user/Patient.r", Patients, Export, false},
		{Clinician, "user/Patient.r user/Patient.s", Patients, Export, true},
		{Clinician, "user/Patient.r user/Observation.s", Patients, Export, false},
		{Clinician, "user/Patient.read", Patients, Search, true}, // of the first version
		{Clinician, "user/Patient.*", Patients, Search, true},
		{Clinician, "user/Patient.write", Patients, Read, false},
		{Clinician, "user/Patient.cud", Patients, Read, false},
		{Clinician, "user/Patient.cruds", Patients, Read, true},
		{Clinician, "user/Practitioner.rs", Clinicians, Search, true},
		{Clinician, "user/Clinician.rs", Clinicians, Search, false}, // FHIR has no such resource
		{Clinician, "patient/Patient.rs", Patients, Read, false},
		{Clinician, "system/Patient.rs", Patients, Read, false},
		{ExportJob, "system/Patient.rs", Patients, ExportAll, true},
		{ExportJob, "system/Patient.r", Patients, ExportAll, false},
		{ExportJob, "user/*.rs", Patients, ExportAll, false},
		{Patient, "patient/Patient.rs", Patients, Read, true},
		{Patient, "user/Patient.rs", Patients, Read, false},
		{Administrator, "user/*.cruds", Patients, Read, false},
		{Clinician, "user/Patient.rs?_id=P000001", Patients, Read, false}, // less than it looks
		{Clinician, "user/patient.rs", Patients, Read, false},
		{Clinician, "user/Patient.sr", Patients, Read, false},
		{Clinician, "user/Patient.rr", Patients, Read, false},
		{Clinician, "user/Patient.", Patients, Read, false},
		{Clinician, "user/Patient", Patients, Read, false},
		{Clinician, "user/.rs", Patients, Read, false},
		{Clinician, "user/**.rs", Patients, Read, false},
		{Clinician, "/Patient.rs", Patients, Read, false},
		{Clinician, "USER/Patient.rs", Patients, Read, false},
		{Clinician, "*", Patients, Read, false},
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

func TestAScopeOpensWhatItsRoleMayDo(t *testing.T) {
	for _, c := range []struct {
		role  Role
		scope string
		want  bool
	}{
		{Clinician, "user/*.rs", true},
		{Clinician, "user/Practitioner.s", true},
		{Clinician, "user/Condition.rs", true}, // beside user/Patient.r
		{Clinician, "user/Procedure.rs", false},
		{Clinician, "user/Patient.write", false},
		{Clinician, "system/Patient.rs", false},
		{Clinician, "openid", false},
		{Administrator, "user/Patient.rs", false},
		{Administrator, "user/*.read", true},
		{ExportJob, "system/Patient.r", true}, // with system/Patient.s beside it
		{ExportJob, "system/Practitioner.rs", false},
		{Patient, "patient/Observation.r", true},
		{"root", "user/*.rs", false},
	} {
		if got := Opens(c.role, c.scope); got != c.want {
			t.Errorf("%s to %s: %v", c.scope, c.role, got)
		}
	}
}
