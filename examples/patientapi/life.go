package patientapi

import (
	"fmt"
	"slices"
	"time"
)

// Today is the day on which the generated people live: nothing that is said of them
// is later. It is fixed, so that a set is the same whenever it is made.
const Today = "2025-12-31"

var today = dayOf(Today)

// adult is the age from which on somebody is no patient of a paediatrician.
const adult = 18

// Seconds after midnight. Visits are over before closing; what is recorded of them
// is recorded later.
const (
	opening  = 8 * 60 * 60
	slot     = 2 * 60 * 60 // in which each visit of one day has its place
	closing  = 20 * 60 * 60
	endOfDay = 24*60*60 - 1
)

// day counts days from 1970-01-01.
type day int

// dayOf returns the day written as 2006-01-02 in the words of this package.
func dayOf(date string) day {
	t, err := time.Parse(time.DateOnly, date)
	if err != nil {
		panic("patientapi: " + err.Error()) // a mistake in the generator
	}
	return day(t.Unix() / (24 * 60 * 60))
}

func (d day) at(second int) time.Time { return time.Unix(int64(d)*24*60*60+int64(second), 0).UTC() }

func (d day) String() string { return d.at(0).Format(time.DateOnly) }

// turns returns the day on which somebody born on d is that many years old, at most a
// day late.
func (d day) turns(years int) day { return d + day((years*1461+3)/4) }

// birth returns a day of birth: ages are as in a country that grows old, and below 100.
func (s *stream) birth() day {
	const decade = 3652
	decades := s.weighted(0.10, 0.105, 0.12, 0.135, 0.13, 0.135, 0.125, 0.09, 0.048)
	return today - day(decades*decade+s.below(decade))
}

// began returns the days between which c may have begun for somebody born on that day:
// in the last twenty years, at the age for it. It is impossible if first is after last.
func (c *condition) began(born day) (first, last day) {
	return max(born.turns(c.from), today.turns(-20)), min(today, born.turns(c.to+1)-2)
}

// diagnoses gives p some of the conditions that are possible, more to the old.
func (s *stream) diagnoses(born day, p *Patient) {
	var possible [len(conditions)]int
	n := 0
	for i := range conditions {
		if first, last := conditions[i].began(born); first <= last {
			possible[n] = i
			n++
		}
	}
	most := 1 + int(today-born)/(25*365)
	for _, k := range s.few(min(most, n), n) {
		c := &conditions[possible[k]]
		first, last := c.began(born)
		p.Diagnoses = append(p.Diagnoses, Diagnosis{fmt.Sprintf("DX-%03d", 100+possible[k]), c.text, s.date(first, last).String()})
	}
}

// medications gives p remedies for some of the diagnoses, none twice.
func (s *stream) medications(p *Patient) {
	for _, d := range p.Diagnoses {
		i := slices.IndexFunc(conditions[:], func(c condition) bool { return c.text == d.Text })
		remedies := conditions[i].remedies
		if len(remedies) == 0 || !s.chance(0.7) {
			continue
		}
		r := remedies[s.below(len(remedies))]
		if slices.ContainsFunc(p.Medications, func(m Medication) bool { return m.Name == r.name }) {
			continue
		}
		since := s.date(max(dayOf(d.Since), today.turns(-10)), today)
		p.Medications = append(p.Medications, Medication{r.name, s.word(r.doses), since.String()})
	}
}

// visits gives p those of the last six years, in order.
func (g Generator) visits(s *stream, born day, p *Patient) {
	var days [maxVisits]day
	came := days[:1+s.below(maxVisits)]
	for i := range came {
		came[i] = s.date(max(born, today.turns(-6)), today)
	}
	slices.Sort(came)
	for _, d := range came {
		why := reasons[s.below(len(reasons))]
		for d < born.turns(why.from) {
			why = reasons[s.below(len(reasons))]
		}
		p.Visits = append(p.Visits, Visit{d.String(), why.text, ClinicianID(g.clinicianFor(s, born, d))})
	}
}

const maxVisits = 5

// latest returns the last day on which the record says that something happened.
func (p *Patient) latest() string {
	last := p.BirthDate
	for _, d := range p.Diagnoses {
		last = max(last, d.Since)
	}
	for _, m := range p.Medications {
		last = max(last, m.Since)
	}
	for _, v := range p.Visits {
		last = max(last, v.Date)
	}
	return last
}
