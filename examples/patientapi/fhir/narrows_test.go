package fhir

import (
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi/patterns"
)

// What is not understood must not widen the answer, least of all for a client that prefers
// leniency: name:exact was left out of account, and the answer was everybody.
func TestWhatIsNotUnderstoodDoesNotWidenTheAnswer(t *testing.T) {
	api := newAPI(t, newStore(t), patterns.Limiter)
	for _, c := range []struct{ path, conditions string }{
		{"/fhir/Patient", "name:exact=Zzz"},
		{"/fhir/Patient", "_id:not=P000001"},
		{"/fhir/Patient", "birthdate:missing=true"},
		{"/fhir/Patient", "family=Zzz"},
		{"/fhir/Patient", "Gender=Zzz"},
		{"/fhir/Patient", "name[]=Zzz"},
		{"/fhir/Patient", "general-practitioner.name=Zzz"},
		{"/fhir/Patient", "_content=Zzz"},
		{"/fhir/Patient", "secret:exact=Zzz"},
		{"/fhir/Patient", "birthDate=1980"},
		{"/fhir/Observation", "patient=P000001&code:in=http://example.org/set"},
		{"/fhir/MedicationRequest", "patient=P000001&patient:not=P000001"},
	} {
		for _, prefer := range []string{"handling=lenient", "handling=strict", "handling=strict, handling=lenient"} {
			for name, a := range map[string]*answer{
				"by URL":           get(t, api, c.path+"?"+c.conditions, "Prefer", prefer),
				"by form":          post(t, api, c.path+"/_search", c.conditions, "Prefer", prefer),
				"in a form's URL":  post(t, api, c.path+"/_search?"+c.conditions, "patient=P000001", "Prefer", prefer),
				"beside what is":   get(t, api, c.path+"?"+c.conditions+"&_count=5", "Prefer", prefer),
				"twice, with none": get(t, api, c.path+"?"+c.conditions+"&"+c.conditions, "Prefer", prefer),
			} {
				if a.Code != 400 || len(a.Entry) > 0 || len(a.Issue) == 0 || strings.Contains(strings.ToLower(a.Body.String()), "zzz") {
					t.Errorf("%s?%s %s, %s: %d %.300s", c.path, c.conditions, name, prefer, a.Code, a.Body)
				}
			}
		}
	}
	// In the URL of a form even what is known there is not.
	for _, conditions := range []string{"name=Zzz", "_id=P000001", "_count=1"} {
		if a := post(t, api, "/fhir/Patient/_search?"+conditions, "", "Prefer", "handling=lenient"); a.Code != 400 {
			t.Errorf("%s in the URL of a form: %d, %d found", conditions, a.Code, len(a.Entry))
		}
	}
	for _, target := range []string{"/fhir/Patient/P000002/$everything?_type:not=Patient", "/fhir/Patient/P000002/$everything?Start=2030", "/fhir/Patient/P000002/$everything?_type=,"} {
		if a := get(t, api, target, "Prefer", "handling=lenient"); a.Code != 400 {
			t.Errorf("%s: %d", target, a.Code)
		}
	}
	for _, target := range []string{"/fhir/$export?_type:not=Patient", "/fhir/$export?_Since=2030", "/fhir/$export?_type=,", "/fhir/$export?_type=Patient,", "/fhir/$export?patient=P000001", "/fhir/$export?_typeFilter=Patient"} {
		if a := get(t, api, target, "Authorization", exportJob, "Prefer", "respond-async, handling=lenient"); a.Code != 400 {
			t.Errorf("%s: %d", target, a.Code)
		}
	}
}

// A search that nobody can match had a link to itself that everybody matched; and system|
// of a register that does not exist found all.
func TestWhoeverCannotBeFoundIsNotFoundByALinkEither(t *testing.T) {
	api := newAPI(t, newStore(t), patterns.Limiter)
	for _, conditions := range []string{
		"_id=x", "_id=,", "_id=P000001&_id=P000002", "_id=P000001&_id=x", "identifier=|MRN-10000001", "identifier=urn:patientapi:|MRN-10000001",
		"identifier=http://example.org|", "identifier=http://example.org|MRN-10000001", "identifier=urn:patientapi:nothing|", "birthdate=lt0001", "birthdate=gt9999", "birthdate=1980&birthdate=1981",
		"_lastUpdated=gt9999", "_lastUpdated=2024&_lastUpdated=2023", "name=Zzz", "name=a&name=Zzz", "identifier=MRN-10000001&identifier=MRN-10000002", "name=&name=Zzz",
	} {
		for _, count := range []string{"", "&_count=0"} {
			a := post(t, api, "/fhir/Patient/_search", conditions+count)
			for range 2 {
				if a.Code != 200 || len(a.Entry) != 0 || a.Total == nil || *a.Total != 0 || a.link("next") != "" {
					t.Errorf("%s%s: %d, %d found, %.300s", conditions, count, a.Code, len(a.Entry), a.Body)
				}
				a = get(t, api, a.path(t, "self"))
			}
		}
	}
	for _, conditions := range []string{"patient=P000001&patient=P000002", "patient=x", "patient=P000001&code=8867-4&code=8480-6", "patient=P000001&code=,"} {
		if a := get(t, api, "/fhir/Observation?"+conditions); a.Code != 200 || len(a.Entry) != 0 {
			t.Errorf("%s: %d, %d found", conditions, a.Code, len(a.Entry))
		}
	}
}
