package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/packed"
	"github.com/spillway-go/spillway/examples/patientapi/postgres/db"
)

// Patient implements patientapi.Store.
func (s *Store) Patient(ctx context.Context, id string, dst *patientapi.Patient) error {
	dst.Clear()
	n, err := patientapi.ParseID(id)
	if err != nil {
		return err
	}
	found := true
	err = s.query(ctx, func(conn db.DBTX) error {
		record, err := db.New(conn).Patient(ctx, int32(n))
		if errors.Is(err, pgx.ErrNoRows) {
			found = false
			return nil
		}
		if err != nil {
			return err
		}
		return fill(&record, dst)
	})
	switch {
	case err != nil:
		dst.Clear()
		return err
	case !found:
		return patientapi.ErrNotFound
	}
	return nil
}

// Patients implements patientapi.Store.
func (s *Store) Patients(ctx context.Context, ids []string, dst *patientapi.Batch) error {
	dst.Clear()
	numbers, err := numbersOf(ids)
	if err != nil {
		return err
	}
	var records []db.Record
	err = s.query(ctx, func(conn db.DBTX) (err error) {
		records, err = db.New(conn).Patients(ctx, numbers)
		return err
	})
	if err != nil {
		return err
	}
	for i, n := range numbers { // the records come in the same order
		if len(records) == 0 || records[0].ID != n {
			dst.Missing = append(dst.Missing, ids[i])
			continue
		}
		if err := fill(&records[0], dst.Next()); err != nil {
			dst.Clear()
			return failed(ctx, err)
		}
		records = records[1:]
	}
	return nil
}

func numbersOf(ids []string) ([]int32, error) {
	numbers := make([]int32, len(ids))
	for i, id := range ids {
		n, err := patientapi.ParseID(id)
		if err != nil {
			return nil, err
		}
		numbers[i] = int32(n)
	}
	return numbers, nil
}

// Search implements patientapi.Store. Its statement is planned for the conditions that
// are set, each time: that costs less than a plan that is good for none of them.
func (s *Store) Search(ctx context.Context, q patientapi.PatientSearch, dst *patientapi.Page) error {
	dst.Clear()
	params, err := searchParams(q)
	if err != nil {
		return err
	}
	if !storableSearch(q) {
		return ctx.Err()
	}
	var records []db.Record
	err = s.query(ctx, func(conn db.DBTX) (err error) {
		records, err = db.New(planned{conn}).Search(ctx, params)
		return err
	})
	if err != nil {
		return err
	}
	if size := q.PageSize(); len(records) > size {
		records, dst.More = records[:size], true
	}
	for i := range records {
		if err := fill(&records[i], dst.Next()); err != nil {
			dst.Clear()
			return failed(ctx, err)
		}
	}
	return nil
}

// Count implements patientapi.Store. It is planned as Search is.
func (s *Store) Count(ctx context.Context, q patientapi.PatientSearch) (int, error) {
	q.After = ""
	p, err := searchParams(q)
	if err != nil {
		return 0, err
	}
	if !storableSearch(q) {
		return 0, ctx.Err()
	}
	var count int64
	err = s.query(ctx, func(conn db.DBTX) (err error) {
		count, err = db.New(planned{conn}).Count(ctx, db.CountParams{
			Ids: p.Ids, Value: p.Value, System: p.System, Name: p.Name, NameEnd: p.NameEnd, AlsoValues: p.AlsoValues, AlsoSystems: p.AlsoSystems,
			AlsoNames: p.AlsoNames, BornFirst: p.BornFirst, BornLast: p.BornLast,
			UpdatedSince: p.UpdatedSince, UpdatedBefore: p.UpdatedBefore,
		})
		return err
	})
	return int(count), err
}

// storableSearch reports whether the database can hold what q asks for.
func storableSearch(q patientapi.PatientSearch) bool {
	return !slices.ContainsFunc(q.Every(), func(one patientapi.Also) bool {
		return !storable(one.Name, one.Identifier.System, one.Identifier.Value)
	})
}

// planned has each question planned for its own arguments.
type planned struct{ db.DBTX }

func (d planned) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return d.DBTX.QueryRow(ctx, sql, append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
}

func (d planned) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return d.DBTX.Query(ctx, sql, append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
}

// lastLetter sorts after every letter that a name has.
const lastLetter = "\U0010ffff"

func searchParams(q patientapi.PatientSearch) (p db.SearchParams, err error) {
	_, after, err := q.Numbers()
	if err != nil {
		return p, err
	}
	if q.IDs != nil {
		if p.Ids, err = numbersOf(q.IDs); err != nil {
			return p, err
		}
	}
	p.After, p.Most = int32(after), int32(q.PageSize()+1)
	p.System, p.Value = q.Identifier.System, q.Identifier.Value
	p.Name = patientapi.FoldName(q.Name)
	p.NameEnd = p.Name + lastLetter
	for _, one := range q.Also {
		if id := one.Identifier; id != (patientapi.Identifier{}) {
			p.AlsoValues, p.AlsoSystems = append(p.AlsoValues, id.Value), append(p.AlsoSystems, id.System)
		}
		if one.Name != "" {
			p.AlsoNames = append(p.AlsoNames, patientapi.FoldName(one.Name))
		}
	}
	p.BornFirst, p.BornLast = dateOf(q.Birth.First), dateOf(q.Birth.Last)
	since, before := q.Updated.Seconds()
	p.UpdatedSince = pgtype.Timestamptz{Time: time.Unix(since, 0), Valid: !q.Updated.Since.IsZero()}
	p.UpdatedBefore = pgtype.Timestamptz{Time: time.Unix(before, 0), Valid: !q.Updated.Before.IsZero()}
	return p, nil
}

// dateOf returns the date written in text; none for an empty one.
func dateOf(text string) pgtype.Date {
	day, err := time.Parse(time.DateOnly, text)
	return pgtype.Date{Time: day, Valid: err == nil}
}

// storable reports whether the database can hold these texts. No record has one that it
// cannot hold, and asking for it would be an error.
func storable(texts ...string) bool {
	for _, text := range texts {
		if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
			return false
		}
	}
	return true
}

// Observations implements patientapi.Store.
func (s *Store) Observations(ctx context.Context, id string) ([]patientapi.Observation, error) {
	n, err := patientapi.ParseID(id)
	if err != nil {
		return nil, err
	}
	var all []patientapi.Observation
	err = s.query(ctx, func(conn db.DBTX) error {
		rows, err := db.New(conn).Observations(ctx, int32(n))
		for _, r := range rows {
			all = append(all, patientapi.Observation{
				Patient: id, Number: int(r.Number), Code: r.Code, Text: r.Text, Value: r.Value, Unit: r.Unit,
				Time: r.Time.Time.UTC(), Version: r.Version, Updated: r.Updated.Time.UTC(),
			})
		}
		return err
	})
	return all, err
}

// Clinicians implements patientapi.Store.
func (s *Store) Clinicians(ctx context.Context, q patientapi.ClinicianQuery) ([]patientapi.Clinician, error) {
	if !storable(q.Email, q.Organisation) {
		return nil, ctx.Err()
	}
	var all []patientapi.Clinician
	err := s.query(ctx, func(conn db.DBTX) error {
		rows, err := db.New(conn).Clinicians(ctx, db.CliniciansParams{Email: q.Email, Organisation: q.Organisation})
		for _, r := range rows {
			all = append(all, patientapi.Clinician{
				ID: patientapi.ClinicianID(int(r.ID)), Name: patientapi.Name{Given: r.Given, Family: r.Family},
				Specialty: r.Specialty, Email: r.Email, Organisation: r.Name,
			})
		}
		return err
	})
	return all, err
}

// fill writes the record into p, which is clear.
func fill(r *db.Record, p *patientapi.Patient) error {
	p.ID = patientapi.FormatID(int(r.ID))
	p.Name = patientapi.Name{Given: r.Given, Family: r.Family}
	p.BirthDate, p.Gender, p.BloodType, p.Phone = r.BirthDate, r.Gender, r.BloodType, r.Phone
	p.Address = patientapi.Address{Street: r.Street, City: r.City, Postcode: r.Postcode}
	p.Physician = patientapi.Clinician{
		ID: patientapi.ClinicianID(int(r.Physician)), Name: patientapi.Name{Given: r.PhysicianGiven, Family: r.PhysicianFamily},
		Specialty: r.Specialty, Email: r.Email, Organisation: r.Organisation,
	}
	p.Insurance = patientapi.Insurance{Insurer: r.Insurer, Policy: r.Policy}
	p.Version, p.Updated = r.Version, r.Updated.Time.UTC()
	lists := packed.Patient{Identifiers: r.Identifiers, Diagnoses: r.Diagnoses, Medications: r.Medications, Allergies: r.Allergies, Visits: r.Visits}
	return lists.Append(p)
}
