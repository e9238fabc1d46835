package patientapi

import (
	"fmt"
	"slices"
)

// GeneratorVersion names what Generator makes. It changes when any patient
// would, so that a stored set can tell that it is an old one.
const GeneratorVersion = 2

// Sizes of what patients refer to. They do not follow the number of patients,
// so that patient 42 is the same person in a set of any size.
const (
	Clinicians    = 400
	Organisations = len(organisations)
)

// Generator makes invented people out of a seed. Every field of every entity
// has a random stream of its own, so a field that is added, removed or drawn in
// another order moves no other. The same seed and number give the same person
// on every machine.
type Generator struct{ Seed uint64 }

// patientFields lists how each field of a patient is drawn. The name is part of
// the stream's identity: renaming it redraws the field. What must agree with another
// field, such as a visit with the date of birth, reads that one, which comes before it.
var patientFields = []struct {
	name string
	draw func(g Generator, s *stream, n int, p *Patient)
}{
	{"identifiers", func(_ Generator, s *stream, n int, p *Patient) {
		p.Identifiers = append(p.Identifiers, Identifier{"mrn", fmt.Sprintf("MRN-%08d", 10_000_000+n)})
		if s.chance(0.9) {
			p.Identifiers = append(p.Identifiers, Identifier{"register", fmt.Sprintf("R%04d-%05d", s.below(10_000), s.below(100_000))})
		}
	}},
	{"given", func(_ Generator, s *stream, _ int, p *Patient) { p.Name.Given = s.word(givenNames[:]) }},
	{"family", func(_ Generator, s *stream, _ int, p *Patient) { p.Name.Family = s.family() }},
	{"birth_date", func(_ Generator, s *stream, _ int, p *Patient) { p.BirthDate = s.birth().String() }},
	{"gender", func(_ Generator, s *stream, _ int, p *Patient) {
		p.Gender = genders[s.weighted(0.495, 0.485, 0.015)]
	}},
	{"blood_type", func(_ Generator, s *stream, _ int, p *Patient) { p.BloodType = s.word(bloodTypes[:]) }},
	{"phone", func(_ Generator, s *stream, _ int, p *Patient) {
		p.Phone = fmt.Sprintf("+000 555 %03d %04d", s.below(1000), s.below(10_000))
	}},
	{"street", func(_ Generator, s *stream, _ int, p *Patient) {
		p.Address.Street = fmt.Sprintf("%d %s %s", 1+s.below(240), s.word(streetNames[:]), s.word(streetKinds[:]))
	}},
	{"city", func(_ Generator, s *stream, _ int, p *Patient) {
		i := s.below(len(cities))
		p.Address.City = cities[i]
		p.Address.Postcode = fmt.Sprintf("%02d-%03d", 10+i, s.below(1000))
	}},
	{"physician", func(g Generator, s *stream, _ int, p *Patient) {
		p.Physician = g.Clinician(g.clinicianFor(s, dayOf(p.BirthDate), today))
	}},
	{"insurer", func(_ Generator, s *stream, _ int, p *Patient) { p.Insurance.Insurer = s.word(insurers[:]) }},
	{"policy", func(_ Generator, s *stream, _ int, p *Patient) {
		p.Insurance.Policy = fmt.Sprintf("%c%c-%07d", 'A'+s.below(26), 'A'+s.below(26), s.below(10_000_000))
	}},
	{"diagnoses", func(_ Generator, s *stream, _ int, p *Patient) { s.diagnoses(dayOf(p.BirthDate), p) }},
	{"medications", func(_ Generator, s *stream, _ int, p *Patient) { s.medications(p) }},
	{"allergies", func(_ Generator, s *stream, _ int, p *Patient) {
		if s.chance(0.6) {
			return
		}
		for _, i := range s.few(2, len(allergens)) {
			p.Allergies = append(p.Allergies, Allergy{allergens[i], s.word(reactions[:]), s.word(severities[:])})
		}
	}},
	{"visits", func(g Generator, s *stream, _ int, p *Patient) { g.visits(s, dayOf(p.BirthDate), p) }},
	{"version", func(_ Generator, s *stream, _ int, p *Patient) { p.Version = int64(1 + s.below(5)) }},
	{"updated", func(_ Generator, s *stream, _ int, p *Patient) {
		last := dayOf(p.latest())
		p.Updated = last.at(closing + s.below(int(today.at(endOfDay).Unix()-last.at(closing).Unix())+1))
	}},
}

// Patient fills dst with patient number n, counted from 1.
func (g Generator) Patient(n int, dst *Patient) {
	dst.Clear()
	dst.ID = FormatID(n)
	g.draw(n, dst)
}

// draw draws the fields of those names; without names, all of them.
func (g Generator) draw(n int, dst *Patient, names ...string) {
	for _, f := range patientFields {
		if len(names) == 0 || slices.Contains(names, f.name) {
			s := g.stream("patient", n, f.name)
			f.draw(g, &s, n, dst)
		}
	}
}

// ClinicianID returns the id of clinician number n.
func ClinicianID(n int) string { return fmt.Sprintf("C%04d", n) }

// specialty returns that of clinician number n.
func (g Generator) specialty(n int) string {
	s := g.stream("clinician", n, "specialty")
	return s.word(specialties[:])
}

// clinicianFor picks the number of a clinician who looks after somebody of that date
// of birth on that day: paediatricians see children, and nobody else does.
func (g Generator) clinicianFor(s *stream, born, on day) int {
	for {
		n := 1 + s.below(Clinicians)
		if (g.specialty(n) == paediatrics) == (on < born.turns(adult)) {
			return n
		}
	}
}

// Clinician returns clinician number n, from 1 to Clinicians.
func (g Generator) Clinician(n int) Clinician {
	field := func(name string) *stream { s := g.stream("clinician", n, name); return &s }
	org := field("organisation").below(Organisations)
	c := Clinician{
		ID:           ClinicianID(n),
		Name:         Name{field("given").word(givenNames[:]), field("family").family()},
		Specialty:    g.specialty(n),
		Organisation: organisations[org],
	}
	// The number keeps two clinicians of one name apart.
	c.Email = fmt.Sprintf("%s.%s.%d@org%02d.example", lower(c.Name.Given), lower(c.Name.Family), n, org+1)
	return c
}
