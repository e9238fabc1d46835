package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spillway-go/spillway/examples/patientapi"
)

// Set names a set of generated people.
type Set struct {
	Patients int
	Seed     uint64
}

func (s Set) check() error {
	if s.Patients < 1 || s.Patients > patientapi.MaxPatients {
		return fmt.Errorf("sqlite: %d patients: want 1 to %d", s.Patients, patientapi.MaxPatients)
	}
	return nil
}

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
	if err := set.check(); err != nil {
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
	w := &seeder{bulk: bulk{ctx: ctx, tx: tx, tables: map[string]*table{}}}
	g := patientapi.Generator{Seed: set.Seed}
	w.clinicians(g)
	chunk := make([]patientapi.Patient, rowsAtOnce)
	for first := 1; first <= set.Patients && w.err == nil; first += len(chunk) {
		chunk = chunk[:min(len(chunk), set.Patients-first+1)]
		for i := range chunk {
			g.Patient(first+i, &chunk[i])
		}
		w.patients(first, chunk)
		if last := first + len(chunk) - 1; progress != nil && (last/1024 != (first-1)/1024 || last == set.Patients) {
			progress(last)
		}
	}
	for name := range w.tables {
		w.flush(name) // what is left refers to rows that are there
	}
	if w.err != nil {
		return cmp.Or(ctx.Err(), w.err) // an ended context shows as all kinds of errors
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO patient_set VALUES (1, ?, ?, ?)`,
		patientapi.GeneratorVersion, set.Patients, strconv.FormatUint(set.Seed, 10)); err != nil {
		return err
	}
	return tx.Commit()
}

// seeder writes people so that every row comes after those it refers to.
type seeder struct {
	bulk
	organisations, insurers names
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

func (w *seeder) patients(first int, chunk []patientapi.Patient) {
	for i := range chunk {
		if n, fresh := w.insurers.number(chunk[i].Insurance.Insurer); fresh {
			w.insert("insurers", n, chunk[i].Insurance.Insurer)
		}
	}
	w.flush("insurers")
	for i := range chunk {
		p := &chunk[i]
		insurer, _ := w.insurers.number(p.Insurance.Insurer)
		w.insert("patients", first+i, p.Name.Given, p.Name.Family, p.BirthDate, p.Gender, p.BloodType, p.Phone,
			p.Address.Street, p.Address.City, p.Address.Postcode, clinicianNumber(p.Physician.ID), insurer, p.Insurance.Policy)
	}
	w.flush("patients")
	for i := range chunk {
		n, p := first+i, &chunk[i]
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
}

// clinicianNumber returns n of patientapi.ClinicianID(n).
func clinicianNumber(id string) int {
	n, _ := strconv.Atoi(id[1:])
	return n
}

// bulk collects rows and inserts them many at a time: the cost of a statement is
// mostly its call.
type bulk struct {
	ctx    context.Context
	tx     *sql.Tx
	tables map[string]*table
	err    error // the first; later calls do nothing
}

type table struct {
	name    string
	columns int
	full    *sql.Stmt // inserts rowsAtOnce rows
	args    []any
}

const rowsAtOnce = 64

func (w *bulk) insert(name string, values ...any) {
	t := w.tables[name]
	if t == nil {
		t = &table{name: name, columns: len(values)}
		w.tables[name] = t
	}
	t.args = append(t.args, values...)
	if len(t.args) == rowsAtOnce*t.columns {
		w.flush(name)
	}
}

// flush writes the rows collected for that table.
func (w *bulk) flush(name string) {
	t := w.tables[name]
	if t == nil || w.err != nil || len(t.args) == 0 {
		return
	}
	switch rows := len(t.args) / t.columns; {
	case rows < rowsAtOnce:
		_, w.err = w.tx.ExecContext(w.ctx, t.statement(rows), t.args...)
	case t.full == nil:
		if t.full, w.err = w.tx.PrepareContext(w.ctx, t.statement(rowsAtOnce)); w.err != nil {
			return
		}
		fallthrough
	default:
		_, w.err = t.full.ExecContext(w.ctx, t.args...)
	}
	t.args = t.args[:0]
}

func (t *table) statement(rows int) string {
	row := "(" + strings.TrimSuffix(strings.Repeat("?,", t.columns), ",") + ")"
	return "INSERT INTO " + t.name + " VALUES " + strings.TrimSuffix(strings.Repeat(row+",", rows), ",")
}
