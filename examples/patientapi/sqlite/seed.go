package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"github.com/spillway-go/spillway/examples/patientapi"
)

// Set names a set of generated people.
type Set = patientapi.Set

// holds returns the set that the database holds, and the version of the
// generator that made it; the zero Set if it is empty.
func holds(ctx context.Context, db *sql.DB) (set Set, generator int, err error) {
	var seed string
	err = db.QueryRowContext(ctx, `SELECT generator, patients, seed FROM patient_set`).Scan(&generator, &set.Patients, &seed)
	if errors.Is(err, sql.ErrNoRows) {
		return Set{}, 0, nil
	}
	if err == nil {
		set.Seed, err = strconv.ParseUint(seed, 10, 64)
	}
	return set, generator, err
}

// Seed fills an empty store, all or nothing. It calls progress, if that is not
// nil, with the number of patients written, every thousand or so.
func (s *Store) Seed(ctx context.Context, set Set, progress func(done int)) error {
	if err := set.Check(); err != nil {
		return err
	}
	if have, _, err := holds(ctx, s.writer); err != nil {
		return err
	} else if have != (Set{}) {
		return fmt.Errorf("sqlite: the store holds %d patients already", have.Patients)
	}
	tx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	indexes, err := dropIndexes(ctx, tx)
	if err != nil {
		return err
	}
	w := &seeder{bulk: bulk{ctx: ctx, tx: tx, tables: map[string]*table{}}}
	if err := w.everybody(set, progress); err != nil {
		return cmp.Or(ctx.Err(), err) // an ended context shows as all kinds of errors
	}
	for _, create := range indexes {
		if _, err := tx.ExecContext(ctx, create); err != nil {
			return cmp.Or(ctx.Err(), err)
		}
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO patient_set VALUES (1, ?, ?, ?)`,
		patientapi.GeneratorVersion, set.Patients, strconv.FormatUint(set.Seed, 10)); err != nil {
		return err
	}
	return tx.Commit()
}

// dropIndexes removes the indexes and returns the statements that make them: one that
// is made of all rows at once is cheaper than one that grows with them.
func dropIndexes(ctx context.Context, tx *sql.Tx) (create []string, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var drop []string
	for rows.Next() {
		var name, statement string
		if err := rows.Scan(&name, &statement); err != nil {
			return nil, err
		}
		drop, create = append(drop, "DROP INDEX "+name), append(create, statement)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, err
	}
	for _, statement := range drop {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return nil, err
		}
	}
	return create, nil
}

// seeder writes people so that every row comes after those it refers to.
type seeder struct {
	bulk
	organisations, insurers, measures names
}

// names numbers words in the order in which they are first met.
type names map[string]int

// number returns the number of name; fresh: it was not met before.
func (m *names) number(name string) (n int, fresh bool) {
	if *m == nil {
		*m = names{}
	}
	n, met := (*m)[name]
	if !met {
		n = len(*m) + 1
		(*m)[name] = n
	}
	return n, !met
}

func (w *seeder) everybody(set Set, progress func(done int)) error {
	g := patientapi.Generator{Seed: set.Seed}
	w.clinicians(g)
	for c := range generate(g, set.Patients) {
		if w.chunk(c); w.err != nil {
			return w.err
		}
		if last := c.first + len(c.patients) - 1; progress != nil && (last/1024 != (c.first-1)/1024 || last == set.Patients) {
			progress(last)
		}
	}
	for name := range w.tables {
		w.flush(name) // what is left refers to rows that are there
	}
	return w.err
}

func (w *seeder) clinicians(g patientapi.Generator) {
	for n := 1; n <= patientapi.Clinicians; n++ {
		c := g.Clinician(n)
		organisation, fresh := w.organisations.number(c.Organisation)
		if fresh {
			w.insert("organisations", organisation, c.Organisation)
			w.flush("organisations")
		}
		w.insert("clinicians", n, c.Name.Given, c.Name.Family, c.Specialty, c.Email, organisation)
	}
	w.flush("clinicians")
	for n := 1; n <= patientapi.Clinicians; n++ {
		for _, email := range g.Clinician(n).Mailboxes() {
			w.insert("mailboxes", email, n)
		}
	}
}

func (w *seeder) chunk(c chunk) {
	for i := range c.patients {
		p := &c.patients[i]
		if n, fresh := w.insurers.number(p.Insurance.Insurer); fresh {
			w.insert("insurers", n, p.Insurance.Insurer)
		}
	}
	w.flush("insurers")
	for i := range c.patients {
		p := &c.patients[i]
		insurer, _ := w.insurers.number(p.Insurance.Insurer)
		w.insert("patients", c.first+i, p.Name.Given, p.Name.Family, p.BirthDate, p.Gender, p.BloodType, p.Phone,
			p.Address.Street, p.Address.City, p.Address.Postcode, clinicianNumber(p.Physician.ID), insurer, p.Insurance.Policy,
			p.Version, p.Updated.Unix())
	}
	w.flush("patients")
	for i := range c.patients {
		n, p := c.first+i, &c.patients[i]
		w.lists(n, p)
		w.observations(n, c.observations[i])
	}
}

func (w *seeder) lists(n int, p *patientapi.Patient) {
	for k, x := range p.Identifiers {
		w.insert("identifiers", n, k, x.System, x.Value)
	}
	for k, x := range p.Diagnoses {
		w.insert("diagnoses", n, k, x.Code, x.Text, x.Since)
	}
	for k, x := range p.Medications {
		w.insert("medications", n, k, x.Name, x.Dose, x.Since)
	}
	for k, x := range p.Allergies {
		w.insert("allergies", n, k, x.Substance, x.Reaction, x.Severity)
	}
	for k, x := range p.Visits {
		w.insert("visits", n, k, x.Date, x.Reason, clinicianNumber(x.Clinician))
	}
}

func (w *seeder) observations(patient int, all []patientapi.Observation) {
	for _, o := range all {
		measure, fresh := w.measures.number(o.Code)
		if fresh {
			w.insert("measures", measure, o.Code, o.Text, o.Unit)
			w.flush("measures")
		}
		w.insert("observations", patient, o.Number, measure, o.Value, o.Time.Unix(), o.Version, o.Updated.Unix())
	}
}

// clinicianNumber returns n of patientapi.ClinicianID(n).
func clinicianNumber(id string) int {
	n, _ := strconv.Atoi(id[1:])
	return n
}
