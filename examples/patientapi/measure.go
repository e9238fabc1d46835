package patientapi

import (
	"cmp"
	"slices"
	"time"
)

// kit is what is measured at one time, or not at all. Its name is part of the identity
// of a random stream.
type kit struct {
	name     string
	measures []measure
}

// measure is something that is measured. Its numbers are whole ones, so that no
// machine rounds them otherwise.
type measure struct {
	code, text, unit string
	usual            []usual
	person, visit    int  // how far people, and one person's visits, differ, in thousandths
	whole            bool // it is written without decimals
}

// usual is the value at an age; between two ages it lies between.
type usual struct{ age, tenths int }

var kits = [...]kit{
	{"cuff", []measure{
		{"8867-4", "heart rate", "/min", []usual{{0, 1400}, {1, 1200}, {6, 950}, {12, 820}, {18, 720}}, 120, 60, true},
		{"8480-6", "systolic blood pressure", "mm[Hg]", []usual{{0, 750}, {10, 1020}, {18, 1160}, {60, 1320}, {100, 1400}}, 120, 50, true},
		{"8462-4", "diastolic blood pressure", "mm[Hg]", []usual{{0, 450}, {10, 620}, {18, 720}, {60, 820}, {100, 780}}, 120, 50, true},
	}},
	{"scales", []measure{
		{"29463-7", "body weight", "kg", []usual{{0, 34}, {1, 98}, {5, 185}, {10, 330}, {15, 550}, {18, 670}, {60, 790}, {100, 650}}, 200, 30, false},
		{"8302-2", "body height", "cm", []usual{{0, 500}, {1, 760}, {5, 1100}, {10, 1390}, {15, 1670}, {18, 1710}, {60, 1710}, {100, 1650}}, 60, 0, false},
	}},
	{"thermometer", []measure{{"8310-5", "body temperature", "Cel", []usual{{0, 369}}, 6, 12, false}}},
	{"strip", []measure{{"2339-0", "glucose", "mg/dL", []usual{{0, 750}, {18, 900}, {60, 1000}}, 120, 100, true}}},
	{"clip", []measure{{"59408-5", "oxygen saturation", "%", []usual{{0, 970}}, 10, 8, true}}},
}

// Observations returns what was measured of patient number n, ordered by Number: at
// visits, and more of the old than of the young.
func (g Generator) Observations(n int) []Observation {
	var p Patient
	g.draw(n, &p, "birth_date", "visits")
	born, id := dayOf(p.BirthDate), FormatID(n)
	var days [maxVisits]day
	var times [maxVisits]time.Time
	clock := g.stream("patient", n, "visit time")
	for i, v := range p.Visits {
		days[i] = dayOf(v.Date)
		times[i] = days[i].at(opening + i*slot + clock.below(slot))
	}
	var all []Observation
	for _, k := range kits {
		var taken [maxVisits]bool
		s := g.stream("patient", n, k.name)
		for i := range p.Visits {
			taken[i] = s.chance(0.06 + float64(days[i]-born)/200_000)
		}
		for _, m := range k.measures {
			s := g.stream("patient", n, m.code)
			own := s.about(m.person)
			for i := range p.Visits {
				if value := m.value(int(days[i]-born), own, s.about(m.visit)); taken[i] {
					all = append(all, Observation{Patient: id, Code: m.code, Text: m.text, Value: value, Unit: m.unit, Time: times[i]})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Observation) int { return a.Time.Compare(b.Time) })
	corrections := g.stream("patient", n, "corrections")
	for i := range all {
		o := &all[i]
		o.Number, o.Version, o.Updated = i+1, 1, o.Time
		if corrections.chance(0.05) {
			o.Version, o.Updated = 2, o.Time.Add(time.Duration(1+corrections.below(3600))*time.Second)
		}
	}
	return all
}

// about returns a number from -spread to spread.
func (s *stream) about(spread int) int { return s.below(2*spread+1) - spread }

// value returns what is measured at that age in days, for a person and at a visit that
// are that many thousandths above what is usual.
func (m *measure) value(days, person, visit int) float64 {
	at, found := slices.BinarySearchFunc(m.usual, days, func(u usual, days int) int { return cmp.Compare(u.days(), days) })
	var tenths int
	switch {
	case found || at == 0:
		tenths = m.usual[at].tenths
	case at == len(m.usual):
		tenths = m.usual[at-1].tenths
	default:
		a, b := m.usual[at-1], m.usual[at]
		tenths = a.tenths + (b.tenths-a.tenths)*(days-a.days())/(b.days()-a.days())
	}
	tenths = tenths * (1000 + person) / 1000 * (1000 + visit) / 1000
	if m.whole {
		return float64((tenths + 5) / 10)
	}
	return float64(tenths) / 10
}

func (u usual) days() int { return u.age * 1461 / 4 }
