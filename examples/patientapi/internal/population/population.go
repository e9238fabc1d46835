// Package population makes the rows of the tables that a set of people is kept in.
package population

import (
	"context"
	"iter"
	"strconv"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
)

// Tables are those that are filled, each behind those that it refers to.
var Tables = []string{
	"organisations", "clinicians", "mailboxes", "insurers", "patients",
	"identifiers", "diagnoses", "medications", "allergies", "visits", "observations",
}

// atOnce is how many patients a Chunk has.
const atOnce = 2000

// Chunk is rows of several tables, with a value for every column.
type Chunk struct {
	Rows map[string][][]any
	Last int // number of the last patient in it; 0 if it has none
}

// Add adds a row.
func (c *Chunk) Add(table string, values ...any) { c.Rows[table] = append(c.Rows[table], values) }

// Form is how a database has what databases have in several ways.
type Form struct {
	Day         func(date string) any // of a day written as 2006-01-02
	Moment      func(time.Time) any
	Observation func(c *Chunk, patient int, o patientapi.Observation) // adds the row
}

// All yields everybody in the set, the next chunk being made while one is used.
func All(ctx context.Context, set patientapi.Set, form Form) iter.Seq[*Chunk] {
	return func(yield func(*Chunk) bool) {
		ctx, cancel := context.WithCancel(ctx)
		made := make(chan *Chunk, 1)
		go func() {
			defer close(made)
			p := people{patientapi.Generator{Seed: set.Seed}, form, map[string]int{}}
			next := p.clinicians()
			for first := 1; ; first += atOnce {
				select {
				case made <- next:
				case <-ctx.Done():
					return
				}
				if first > set.Patients {
					return
				}
				next = p.patients(first, min(first+atOnce-1, set.Patients))
			}
		}()
		defer func() {
			cancel()
			for range made { // until it has ended
			}
		}()
		for c := range made {
			if !yield(c) {
				return
			}
		}
	}
}

// people makes rows, each after those that it refers to.
type people struct {
	gen patientapi.Generator
	Form
	insurers map[string]int
}

func (p *people) clinicians() *Chunk {
	c := &Chunk{Rows: map[string][][]any{}}
	organisations := map[string]int{}
	for n := 1; n <= patientapi.Clinicians; n++ {
		who := p.gen.Clinician(n)
		if organisations[who.Organisation] == 0 {
			organisations[who.Organisation] = len(organisations) + 1
			c.Add("organisations", len(organisations), who.Organisation)
		}
		c.Add("clinicians", n, who.Name.Given, who.Name.Family, who.Specialty, who.Email, organisations[who.Organisation])
		for _, email := range who.Mailboxes() {
			c.Add("mailboxes", email, n)
		}
	}
	return c
}

func (p *people) patients(first, last int) *Chunk {
	c := &Chunk{Rows: map[string][][]any{}, Last: last}
	var who patientapi.Patient
	for n := first; n <= last; n++ {
		p.gen.Patient(n, &who)
		p.patient(c, n, &who)
		for _, o := range p.gen.Observations(n) {
			p.Observation(c, n, o)
		}
	}
	return c
}

func (p *people) patient(c *Chunk, n int, who *patientapi.Patient) {
	insurer := p.insurers[who.Insurance.Insurer]
	if insurer == 0 {
		insurer = len(p.insurers) + 1
		p.insurers[who.Insurance.Insurer] = insurer
		c.Add("insurers", insurer, who.Insurance.Insurer)
	}
	c.Add("patients", n, who.Name.Given, who.Name.Family, p.Day(who.BirthDate), who.Gender, who.BloodType, who.Phone,
		who.Address.Street, who.Address.City, who.Address.Postcode, clinicianNumber(who.Physician.ID), insurer, who.Insurance.Policy,
		who.Version, p.Moment(who.Updated))
	for i, x := range who.Identifiers {
		c.Add("identifiers", n, i, x.System, x.Value)
	}
	for i, x := range who.Diagnoses {
		c.Add("diagnoses", n, i, x.Code, x.Text, p.Day(x.Since))
	}
	for i, x := range who.Medications {
		c.Add("medications", n, i, x.Name, x.Dose, p.Day(x.Since))
	}
	for i, x := range who.Allergies {
		c.Add("allergies", n, i, x.Substance, x.Reaction, x.Severity)
	}
	for i, x := range who.Visits {
		c.Add("visits", n, i, p.Day(x.Date), x.Reason, clinicianNumber(x.Clinician))
	}
}

// clinicianNumber returns n of patientapi.ClinicianID(n).
func clinicianNumber(id string) int {
	n, _ := strconv.Atoi(id[1:])
	return n
}
