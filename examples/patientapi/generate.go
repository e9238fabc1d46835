package patientapi

import (
	"fmt"
	"time"
)

// GeneratorVersion names what Generator makes. It changes when any patient
// would, so that a stored set can tell that it is an old one.
const GeneratorVersion = 1

// Sizes of what patients refer to. They do not follow the number of patients,
// so that patient 42 is the same person in a set of any size.
const (
	Clinicians    = 400
	Organisations = len(organisations)
	Insurers      = len(insurers)
)

// Generator makes invented people out of a seed. Every field of every entity
// has a random stream of its own, so a field that is added, removed or drawn in
// another order moves no other. The same seed and number give the same person
// on every machine.
type Generator struct{ Seed uint64 }

// patientFields lists how each field of a patient is drawn. The name is part of
// the stream's identity: renaming it redraws the field.
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
	{"birth_date", func(_ Generator, s *stream, _ int, p *Patient) { p.BirthDate = s.date(1925, 2024) }},
	{"gender", func(_ Generator, s *stream, _ int, p *Patient) {
		p.Gender = s.weighted([]string{"female", "male", "other", "unknown"}, []float64{0.495, 0.485, 0.015})
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
	{"physician", func(g Generator, s *stream, _ int, p *Patient) { p.Physician = g.Clinician(1 + s.below(Clinicians)) }},
	{"insurer", func(_ Generator, s *stream, _ int, p *Patient) { p.Insurance.Insurer = s.word(insurers[:]) }},
	{"policy", func(_ Generator, s *stream, _ int, p *Patient) {
		p.Insurance.Policy = fmt.Sprintf("%c%c-%07d", 'A'+s.below(26), 'A'+s.below(26), s.below(10_000_000))
	}},
	{"diagnoses", func(_ Generator, s *stream, _ int, p *Patient) {
		for _, i := range s.few(4, len(diagnoses)) {
			p.Diagnoses = append(p.Diagnoses, Diagnosis{fmt.Sprintf("DX-%03d", 100+i), diagnoses[i], s.date(2005, 2025)})
		}
	}},
	{"medications", func(_ Generator, s *stream, _ int, p *Patient) {
		for _, i := range s.few(4, len(medications)) {
			p.Medications = append(p.Medications, Medication{medications[i], s.word(doses[:]), s.date(2015, 2025)})
		}
	}},
	{"allergies", func(_ Generator, s *stream, _ int, p *Patient) {
		if s.chance(0.6) {
			return
		}
		for _, i := range s.few(2, len(allergens)) {
			p.Allergies = append(p.Allergies, Allergy{allergens[i], s.word(reactions[:]), s.word(severities[:])})
		}
	}},
	{"visits", func(_ Generator, s *stream, _ int, p *Patient) {
		for range 1 + s.below(5) {
			p.Visits = append(p.Visits, Visit{s.date(2020, 2025), s.word(visitReasons[:]), ClinicianID(1 + s.below(Clinicians))})
		}
	}},
}

// Patient fills dst with patient number n, counted from 1.
func (g Generator) Patient(n int, dst *Patient) {
	dst.Clear()
	dst.ID = FormatID(n)
	for _, f := range patientFields {
		s := g.stream("patient", n, f.name)
		f.draw(g, &s, n, dst)
	}
}

// ClinicianID returns the id of clinician number n.
func ClinicianID(n int) string { return fmt.Sprintf("C%04d", n) }

// Clinician returns clinician number n, from 1 to Clinicians.
func (g Generator) Clinician(n int) Clinician {
	field := func(name string) *stream { s := g.stream("clinician", n, name); return &s }
	org := field("organisation").below(Organisations)
	c := Clinician{
		ID:           ClinicianID(n),
		Name:         Name{field("given").word(givenNames[:]), field("family").family()},
		Specialty:    field("specialty").word(specialties[:]),
		Organisation: organisations[org],
	}
	// The number keeps two clinicians of one name apart.
	c.Email = fmt.Sprintf("%s.%s.%d@org%02d.example", lower(c.Name.Given), lower(c.Name.Family), n, org+1)
	return c
}

// stream is a small random generator (SplitMix64), made per field: it costs
// nothing to start, which is why there can be so many.
type stream struct{ state uint64 }

// stream returns the random stream of one field of one entity.
func (g Generator) stream(kind string, number int, field string) stream {
	h := uint64(14695981039346656037) // FNV-1a
	mix := func(b byte) { h = (h ^ uint64(b)) * 1099511628211 }
	for i := range len(kind) {
		mix(kind[i])
	}
	mix(0)
	for i := range len(field) {
		mix(field[i])
	}
	s := stream{h ^ g.Seed*0x9e3779b97f4a7c15}
	s.state = s.next() ^ uint64(number)*0xd1342543de82ef95
	s.next()
	return s
}

func (s *stream) next() uint64 {
	s.state += 0x9e3779b97f4a7c15
	z := s.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number from 0 to n-1. The bias is below n/2^32.
func (s *stream) below(n int) int { return int(s.next() >> 32 * uint64(n) >> 32) }

func (s *stream) chance(p float64) bool { return float64(s.next()>>11)/(1<<53) < p }

func (s *stream) word(words []string) string { return words[s.below(len(words))] }

// weighted picks a word; the last one gets what the weights leave over.
func (s *stream) weighted(words []string, weights []float64) string {
	x := float64(s.next()>>11) / (1 << 53)
	for i, w := range weights {
		if x -= w; x < 0 {
			return words[i]
		}
	}
	return words[len(words)-1]
}

func (s *stream) family() string { return s.word(familyStarts[:]) + s.word(familyEnds[:]) }

func (s *stream) date(from, to int) string {
	first := time.Date(from, 1, 1, 0, 0, 0, 0, time.UTC)
	days := int(time.Date(to+1, 1, 1, 0, 0, 0, 0, time.UTC).Sub(first).Hours() / 24)
	return first.AddDate(0, 0, s.below(days)).Format(time.DateOnly)
}

// few picks up to most different numbers below n.
func (s *stream) few(most, n int) []int {
	var picked [8]int
	count := s.below(most + 1)
	for i := range count {
	again:
		picked[i] = s.below(n)
		for _, earlier := range picked[:i] {
			if earlier == picked[i] {
				goto again
			}
		}
	}
	return append([]int(nil), picked[:count]...)
}

func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
