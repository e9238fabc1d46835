package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/population"
	"github.com/spillway-go/spillway/examples/patientapi/postgres/db"
)

var form = population.Form{
	Day: func(date string) any {
		t, _ := time.Parse(time.DateOnly, date)
		return t
	},
	Moment: func(t time.Time) any { return t },
	Observation: func(c *population.Chunk, patient int, o patientapi.Observation) {
		c.Add("observations", patient, o.Number, o.Code, o.Text, o.Value, o.Unit, o.Time, o.Version, o.Updated)
	},
}

// seed fills the empty tables in one transaction.
func seed(ctx context.Context, conn *pgx.Conn, set patientapi.Set, progress func(done int)) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		restore, err := suspend(ctx, tx)
		if err != nil {
			return err
		}
		for chunk := range population.All(ctx, set, form) {
			if err := write(ctx, tx, chunk.Rows); err != nil {
				return err
			}
			if progress != nil && chunk.Last > 0 {
				progress(chunk.Last)
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, statement := range append(restore, "ANALYZE "+strings.Join(population.Tables, ", ")) {
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
		FROM pg_index WHERE NOT indisunique AND indrelid::regclass::text = ANY ($1)`, population.Tables)
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

// write copies rows into their tables.
func write(ctx context.Context, tx pgx.Tx, all map[string][][]any) error {
	for _, table := range population.Tables {
		rows := all[table]
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
