package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/population"
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
// nil, with the number of patients written, every two thousand.
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
	w := bulk{ctx, tx, map[string]*sql.Stmt{}}
	for chunk := range population.All(ctx, set, newForm()) {
		for _, table := range tables {
			if err := w.insert(table, chunk.Rows[table]); err != nil {
				return cmp.Or(ctx.Err(), err) // an ended context shows as all kinds of errors
			}
		}
		if progress != nil && chunk.Last > 0 {
			progress(chunk.Last)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
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

// tables are in an order in which every row comes after those that it refers to.
var tables = append([]string{"measures"}, population.Tables...)

// newForm returns how this database has people: what is measured has a table of its own.
func newForm() population.Form {
	measures := map[string]int{}
	return population.Form{
		Day:    func(date string) any { return date },
		Moment: func(t time.Time) any { return t.Unix() },
		Observation: func(c *population.Chunk, patient int, o patientapi.Observation) {
			if measures[o.Code] == 0 {
				measures[o.Code] = len(measures) + 1
				c.Add("measures", measures[o.Code], o.Code, o.Text, o.Unit)
			}
			c.Add("observations", patient, o.Number, measures[o.Code], o.Value, o.Time.Unix(), o.Version, o.Updated.Unix())
		},
	}
}

// bulk inserts many rows at a time: the cost of a statement is mostly its call.
type bulk struct {
	ctx  context.Context
	tx   *sql.Tx
	full map[string]*sql.Stmt // by the table; inserts rowsAtOnce rows
}

const rowsAtOnce = 64

func (w bulk) insert(table string, rows [][]any) (err error) {
	for some := range slices.Chunk(rows, rowsAtOnce) {
		values := slices.Concat(some...)
		row := "(" + strings.TrimSuffix(strings.Repeat("?,", len(some[0])), ",") + ")"
		statement := "INSERT INTO " + table + " VALUES " + strings.TrimSuffix(strings.Repeat(row+",", len(some)), ",")
		if len(some) < rowsAtOnce {
			_, err = w.tx.ExecContext(w.ctx, statement, values...)
			return err
		}
		if w.full[table] == nil {
			if w.full[table], err = w.tx.PrepareContext(w.ctx, statement); err != nil {
				return err
			}
		}
		if _, err = w.full[table].ExecContext(w.ctx, values...); err != nil {
			return err
		}
	}
	return nil
}
