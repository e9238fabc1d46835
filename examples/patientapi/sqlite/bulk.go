package sqlite

import (
	"context"
	"database/sql"
	"strings"
)

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
