package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/postgres/db"
)

// atOnce is how many patients are copied at one time.
const atOnce = 2000

// seed fills the empty tables in one transaction.
func seed(ctx context.Context, conn *pgx.Conn, set patientapi.Set, progress func(done int)) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		restore, err := suspend(ctx, tx)
		if err != nil {
			return err
		}
		for chunk := range people(ctx, set) {
			if err := chunk.copy(ctx, tx); err != nil {
				return err
			}
			if progress != nil && chunk.last > 0 {
				progress(chunk.last)
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, statement := range append(restore, "ANALYZE "+strings.Join(tables, ", ")) {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return db.New(tx).FinishSet(ctx, db.FinishSetParams{
			Generator: patientapi.GeneratorVersion, Patients: int32(set.Patients), Seed: strconv.FormatUint(set.Seed, 10),
		})
	})
}

// suspend drops the foreign keys, and the indexes that are no constraints, and returns
// the statements that make them again: checking all rows at once costs a tenth of
// checking each.
func suspend(ctx context.Context, tx pgx.Tx) (restore []string, err error) {
	rows, err := tx.Query(ctx, `
		SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname),
			format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
		FROM pg_constraint WHERE contype = 'f' AND conrelid::regclass::text = ANY ($1)
		UNION ALL
		SELECT format('DROP INDEX %s', indexrelid::regclass), pg_get_indexdef(indexrelid)
		FROM pg_index WHERE NOT indisunique AND indrelid::regclass::text = ANY ($1)`, tables)
	if err != nil {
		return nil, err
	}
	var drop, add string
	var drops []string
	if _, err := pgx.ForEachRow(rows, []any{&drop, &add}, func() error {
		drops, restore = append(drops, drop), append(restore, add)
		return nil
	}); err != nil {
		return nil, err
	}
	for _, statement := range drops {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return nil, err
		}
	}
	return restore, nil
}

// tables are those that are filled.
var tables = []string{
	"organisations", "clinicians", "mailboxes", "insurers", "patients",
	"identifiers", "diagnoses", "medications", "allergies", "visits", "observations",
}

// chunk is rows of several tables.
type chunk struct {
	rows map[string][][]any
	last int // number of the last patient in it; 0 if it has none
}

func (c *chunk) add(table string, values ...any) { c.rows[table] = append(c.rows[table], values) }

// copy writes all rows. Each has a value for every column of its table.
func (c *chunk) copy(ctx context.Context, tx pgx.Tx) error {
	for _, table := range tables {
		rows := c.rows[table]
		if len(rows) == 0 {
			continue
		}
		columns, err := columnsOf(ctx, tx, table)
		if err != nil {
			return err
		}
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromRows(rows)); err != nil {
			return fmt.Errorf("%s: %w", table, err)
		}
	}
	return nil
}

func columnsOf(ctx context.Context, tx pgx.Tx, table string) (names []string, err error) {
	described, err := tx.Prepare(ctx, "columns of "+table, "SELECT * FROM "+table)
	if err != nil {
		return nil, err
	}
	for _, f := range described.Fields {
		names = append(names, f.Name)
	}
	return names, nil
}

// people yields everybody in the set, the next part being made while one is used.
func people(ctx context.Context, set patientapi.Set) func(yield func(*chunk) bool) {
	return func(yield func(*chunk) bool) {
		ctx, cancel := context.WithCancel(ctx)
		made := make(chan *chunk, 1)
		go func() {
			defer close(made)
			p := population{gen: patientapi.Generator{Seed: set.Seed}, insurers: map[string]int{}}
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

// population makes rows, each after those that it refers to.
type population struct {
	gen      patientapi.Generator
	insurers map[string]int
}

func (p *population) clinicians() *chunk {
	c := &chunk{rows: map[string][][]any{}}
	organisations := map[string]int{}
	for n := 1; n <= patientapi.Clinicians; n++ {
		who := p.gen.Clinician(n)
		if organisations[who.Organisation] == 0 {
			organisations[who.Organisation] = len(organisations) + 1
			c.add("organisations", len(organisations), who.Organisation)
		}
		c.add("clinicians", n, who.Name.Given, who.Name.Family, who.Specialty, who.Email, organisations[who.Organisation])
		for _, email := range who.Mailboxes() {
			c.add("mailboxes", email, n)
		}
	}
	return c
}

func (p *population) patients(first, last int) *chunk {
	c := &chunk{rows: map[string][][]any{}, last: last}
	var who patientapi.Patient
	for n := first; n <= last; n++ {
		p.gen.Patient(n, &who)
		p.patient(c, n, &who)
		for _, o := range p.gen.Observations(n) {
			c.add("observations", n, o.Number, o.Code, o.Text, o.Value, o.Unit, o.Time, o.Version, o.Updated)
		}
	}
	return c
}

func (p *population) patient(c *chunk, n int, who *patientapi.Patient) {
	insurer := p.insurers[who.Insurance.Insurer]
	if insurer == 0 {
		insurer = len(p.insurers) + 1
		p.insurers[who.Insurance.Insurer] = insurer
		c.add("insurers", insurer, who.Insurance.Insurer)
	}
	c.add("patients", n, who.Name.Given, who.Name.Family, day(who.BirthDate), who.Gender, who.BloodType, who.Phone,
		who.Address.Street, who.Address.City, who.Address.Postcode, clinicianNumber(who.Physician.ID), insurer, who.Insurance.Policy,
		who.Version, who.Updated)
	for i, x := range who.Identifiers {
		c.add("identifiers", n, i, x.System, x.Value)
	}
	for i, x := range who.Diagnoses {
		c.add("diagnoses", n, i, x.Code, x.Text, day(x.Since))
	}
	for i, x := range who.Medications {
		c.add("medications", n, i, x.Name, x.Dose, day(x.Since))
	}
	for i, x := range who.Allergies {
		c.add("allergies", n, i, x.Substance, x.Reaction, x.Severity)
	}
	for i, x := range who.Visits {
		c.add("visits", n, i, day(x.Date), x.Reason, clinicianNumber(x.Clinician))
	}
}

// day returns the date that the generator wrote.
func day(date string) time.Time {
	t, _ := time.Parse(time.DateOnly, date)
	return t
}

// clinicianNumber returns n of patientapi.ClinicianID(n).
func clinicianNumber(id string) int {
	n, _ := strconv.Atoi(id[1:])
	return n
}
