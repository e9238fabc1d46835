package fhir

import (
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/access"
)

// The systems that values of this service are of.
const (
	identifiersOf = "urn:patientapi:" // and the register, such as mrn
	clinicianIDs  = "urn:patientapi:clinician"
	loinc         = "http://loinc.org"
	ucum          = "http://unitsofmeasure.org"
	categories    = "http://terminology.hl7.org/CodeSystem/observation-category"
)

// Resources returns those of that type which a patient has; observations are the
// patient's. Each is used before the next one is asked for.
func Resources(t access.Resource, p *patientapi.Patient, observations []patientapi.Observation) iter.Seq[any] {
	return func(yield func(any) bool) {
		switch t {
		case access.Patients:
			yield(patientOf(p))
		case access.Observations:
			for i := range observations {
				if !yield(observationOf(&observations[i])) {
					return
				}
			}
		case access.MedicationRequests:
			for i := range p.Medications {
				if !yield(medicationOf(p, i)) {
					return
				}
			}
		}
	}
}

// patientOf returns p as a resource. It keeps no memory of p that a store may reuse.
func patientOf(p *patientapi.Patient) patient {
	r := patient{
		ResourceType: "Patient",
		ID:           p.ID,
		Meta:         metaOf(p),
		Name:         []humanName{{"official", p.Name.Family, []string{p.Name.Given}}},
		Gender:       p.Gender,
		BirthDate:    p.BirthDate,
	}
	for i, id := range p.Identifiers {
		use := "usual"
		if i > 0 {
			use = "official"
		}
		r.Identifier = append(r.Identifier, identifier{use, identifiersOf + id.System, id.Value})
	}
	if p.Phone != "" {
		r.Telecom = []contactPoint{{"phone", p.Phone, "home"}}
	}
	if a := p.Address; a != (patientapi.Address{}) {
		r.Address = []address{{"home", []string{a.Street}, a.City, a.Postcode}}
	}
	if p.Physician.ID != "" {
		r.GeneralPractitioner = []reference{practitioner(p.Physician)}
	}
	return r
}

func metaOf(p *patientapi.Patient) meta { return meta{strconv.FormatInt(p.Version, 10), p.Updated} }

// practitioner names a clinician, who is no resource of this API.
func practitioner(c patientapi.Clinician) reference {
	return reference{Type: "Practitioner", Identifier: &identifier{System: clinicianIDs, Value: c.ID}, Display: c.Name.Given + " " + c.Name.Family}
}

func subject(id string) reference { return reference{Reference: "Patient/" + id} }

// laboratory are the codes of LOINC that are no vital signs.
var laboratory = map[string]bool{"2339-0": true}

func observationOf(o *patientapi.Observation) observation {
	category := coding{categories, "vital-signs", "Vital Signs"}
	if laboratory[o.Code] {
		category = coding{categories, "laboratory", "Laboratory"}
	}
	return observation{
		ResourceType:  "Observation",
		ID:            partID(o.Patient, 'o', o.Number),
		Meta:          meta{strconv.FormatInt(o.Version, 10), o.Updated},
		Status:        "final",
		Category:      []concept{{Coding: []coding{category}}},
		Code:          concept{Coding: []coding{{System: loinc, Code: o.Code}}, Text: o.Text},
		Subject:       subject(o.Patient),
		Effective:     o.Time,
		ValueQuantity: quantity{o.Value, o.Unit, ucum, o.Unit},
	}
}

// medicationOf returns the medication of that index as a prescription. It has no
// version of its own: it changes with the patient.
func medicationOf(p *patientapi.Patient, i int) medicationRequest {
	m := p.Medications[i]
	r := medicationRequest{
		ResourceType: "MedicationRequest",
		ID:           partID(p.ID, 'm', i+1),
		Meta:         metaOf(p),
		Status:       "active",
		Intent:       "order",
		Medication:   concept{Text: m.Name},
		Subject:      subject(p.ID),
		AuthoredOn:   m.Since,
		Requester:    practitioner(p.Physician),
	}
	if m.Dose != "" {
		r.DosageInstruction = []dosage{{m.Dose}}
	}
	return r
}

// partID is the id of what belongs to a patient, such as P000042-m1.
func partID(patient string, kind byte, n int) string { return fmt.Sprintf("%s-%c%d", patient, kind, n) }

// parsePartID returns whose part it is, and its number, from 1; false for what
// partID does not make.
func parsePartID(id string, kind byte) (patient string, n int, ok bool) {
	patient, rest, _ := strings.Cut(id, "-")
	if _, err := patientapi.ParseID(patient); err != nil {
		return "", 0, false
	}
	n, err := strconv.Atoi(strings.TrimPrefix(rest, string(kind)))
	return patient, n, err == nil && n > 0 && id == partID(patient, kind, n)
}
