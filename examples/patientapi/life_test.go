package patientapi

import (
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

const population = 4000

// age returns the age in whole years on a day, by the calendar.
func age(t *testing.T, birth, on string) int {
	t.Helper()
	b, err := time.Parse(time.DateOnly, birth)
	require.NoError(t, err)
	d, err := time.Parse(time.DateOnly, on)
	require.NoError(t, err)
	years := d.Year() - b.Year()
	if d.Month() < b.Month() || d.Month() == b.Month() && d.Day() < b.Day() {
		years--
	}
	return years
}

func TestNothingHappensBeforeBirthOrAfterToday(t *testing.T) {
	for n := 1; n <= population; n++ {
		p := generated(5, n)
		within := func(what, date string) {
			if date < p.BirthDate || date > Today || len(date) != len(Today) {
				t.Errorf("patient %d, born %s: %s on %s", n, p.BirthDate, what, date)
			}
		}
		within("born", p.BirthDate)
		latest := ""
		for _, d := range p.Diagnoses {
			within(d.Text, d.Since)
			latest = max(latest, d.Since)
		}
		for _, m := range p.Medications {
			within(m.Name, m.Since)
			latest = max(latest, m.Since)
		}
		for _, v := range p.Visits {
			within(v.Reason, v.Date)
			latest = max(latest, v.Date)
		}
		if !slices.IsSortedFunc(p.Visits, func(a, b Visit) int { return dayOf(a.Date).at(0).Compare(dayOf(b.Date).at(0)) }) {
			t.Errorf("the visits of patient %d are in no order", n)
		}
		if p.Version < 1 || p.Version > 5 {
			t.Errorf("patient %d has version %d", n, p.Version)
		}
		changed := p.Updated.Format(time.DateOnly)
		if within("changed", changed); changed < latest || p.Updated.Location() != time.UTC || p.Updated.Nanosecond() != 0 {
			t.Errorf("patient %d was changed at %v, with something on %s in it", n, p.Updated, latest)
		}
	}
}

func TestChildrenAreTreatedAsChildren(t *testing.T) {
	adults := []string{"raised blood pressure", "type 2 diabetes", "gout", "osteoporosis", "insomnia", "low mood", "high cholesterol",
		"Corvexal", "Metrigan", "Uricalm", "Bextavir", "Dormilan", "Sertolin", "Lorvastin", "blood pressure control"}
	specialty := map[string]string{}
	for n := 1; n <= Clinicians; n++ {
		specialty[ClinicianID(n)] = Generator{5}.Clinician(n).Specialty
	}
	children := 0
	for n := 1; n <= population; n++ {
		p := generated(5, n)
		now := age(t, p.BirthDate, Today)
		if child := now < 18; child != (p.Physician.Specialty == paediatrics) {
			t.Errorf("patient %d of %d years has a physician for %s", n, now, p.Physician.Specialty)
		}
		for _, v := range p.Visits {
			then := age(t, p.BirthDate, v.Date)
			if child := then < 18; child != (specialty[v.Clinician] == paediatrics) {
				t.Errorf("patient %d went to %s at %d", n, specialty[v.Clinician], then)
			}
			if then < 14 && slices.Contains([]string{"back pain", "blood pressure control"}, v.Reason) {
				t.Errorf("patient %d came for %s at %d", n, v.Reason, then)
			}
		}
		if now >= 18 {
			continue
		}
		children++
		for _, d := range p.Diagnoses {
			if slices.Contains(adults, d.Text) {
				t.Errorf("a child of %d has %s", now, d.Text)
			}
		}
		for _, m := range p.Medications {
			if slices.Contains(adults, m.Name) {
				t.Errorf("a child of %d takes %s", now, m.Name)
			}
		}
	}
	if children < population/10 {
		t.Errorf("%d children are too few to tell", children)
	}
}

func TestConditionsBeginAtTheirAgeAndMedicationsAreForThem(t *testing.T) {
	treated := 0
	for n := 1; n <= population; n++ {
		p := generated(6, n)
		for _, d := range p.Diagnoses {
			i := slices.IndexFunc(conditions[:], func(c condition) bool { return c.text == d.Text })
			if c, then := conditions[i], age(t, p.BirthDate, d.Since); then < c.from || then > c.to {
				t.Errorf("patient %d got %s at %d, want %d to %d", n, d.Text, then, c.from, c.to)
			}
		}
		for k, m := range p.Medications {
			treated++
			if !slices.ContainsFunc(p.Diagnoses, func(d Diagnosis) bool { return d.Since <= m.Since && takenFor(m.Name, d.Text) }) {
				t.Errorf("patient %d takes %s since %s for nothing in %v", n, m.Name, m.Since, p.Diagnoses)
			}
			if slices.ContainsFunc(p.Medications[:k], func(other Medication) bool { return other.Name == m.Name }) {
				t.Errorf("patient %d takes %s twice", n, m.Name)
			}
		}
	}
	if treated < population/4 {
		t.Errorf("%d medications are too few to tell", treated)
	}
}

func takenFor(name, text string) bool {
	return slices.ContainsFunc(conditions[:], func(c condition) bool {
		return c.text == text && slices.ContainsFunc(c.remedies, func(r remedy) bool { return r.name == name })
	})
}
