package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"strings"
	"sync"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
)

// mostSearches bounds the statements that are kept: each is some 60 KB, and callers decide
// how many names and identifiers are asked for in which order.
const mostSearches = 128

// searches keeps the statements of the first kinds of searches that were made. A
// statement depends on which conditions are set, not on what they say.
type searches struct {
	mu sync.Mutex
	by map[string]*sql.Stmt
}

// prepare returns the statement, which is kept if there is room.
func (s *searches) prepare(ctx context.Context, db *sql.DB, text string) (query, error) {
	s.mu.Lock()
	stmt, full := s.by[text], len(s.by) >= mostSearches
	s.mu.Unlock()
	switch {
	case stmt != nil:
		return stmt, nil
	case full:
		return unprepared{db, text}, nil
	}
	stmt, err := db.PrepareContext(ctx, text)
	if err != nil {
		return nil, failed(ctx, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.by[text]; other != nil {
		stmt.Close()
		return other, nil
	}
	if s.by == nil {
		s.by = map[string]*sql.Stmt{}
	}
	s.by[text] = stmt
	return stmt, nil
}

type unprepared struct {
	db   *sql.DB
	text string
}

func (q unprepared) QueryContext(ctx context.Context, args ...any) (*sql.Rows, error) {
	return q.db.QueryContext(ctx, q.text, args...)
}

// Search implements patientapi.Store.
func (s *Store) Search(ctx context.Context, q patientapi.PatientSearch, dst *patientapi.Page) error {
	dst.Clear()
	ids, after, err := q.Numbers()
	if err != nil {
		return err
	}
	text, args := search(q, ids, after)
	query, err := s.searches.prepare(ctx, s.readers, text)
	if err != nil {
		return err
	}
	err = s.each(ctx, query, func(rows *sql.Rows) error {
		if len(dst.Patients) == q.PageSize() {
			dst.More = true // it is the last row
			return nil
		}
		_, err := scan(rows, dst.Next())
		return err
	}, args...)
	if err != nil {
		dst.Clear()
	}
	return err
}

// Count implements patientapi.Store.
func (s *Store) Count(ctx context.Context, q patientapi.PatientSearch) (count int, err error) {
	q.After = ""
	ids, after, err := q.Numbers()
	if err != nil {
		return 0, err
	}
	found, args := matching(q, ids, after)
	query, err := s.searches.prepare(ctx, s.readers, "SELECT count(*) "+found)
	if err != nil {
		return 0, err
	}
	err = s.each(ctx, query, func(rows *sql.Rows) error { return rows.Scan(&count) }, args...)
	return count, err
}

// search returns the statement for q and its arguments. The numbers of one page are
// found first, in an index, and only then is anything read of those patients.
func search(q patientapi.PatientSearch, ids []int, after int) (query string, args []any) {
	found, args := matching(q, ids, after)
	args = append(args, q.PageSize()+1)
	return selectPatient + ` FROM (SELECT s.id ` + found + ` ORDER BY s.id LIMIT ?) page CROSS JOIN patients p ON p.id = page.id` + joined + ` ORDER BY page.id`, args
}

// matching returns where the patients s of q are, as the part of a statement from FROM on,
// and its arguments.
func matching(q patientapi.PatientSearch, ids []int, after int) (found string, args []any) {
	var where []string
	and := func(condition string, values ...any) {
		where = append(where, condition)
		args = append(args, values...)
	}
	index := "" // to read from, unless a list of numbers is better
	if q.Updated != (patientapi.Times{}) {
		index = " INDEXED BY patients_updated"
		since, before := q.Updated.Seconds()
		and("s.updated >= ? AND s.updated < ?", since, before)
	}
	if q.Birth != (patientapi.Dates{}) {
		index = " INDEXED BY patients_birth_date"
		and("s.birth_date >= ? AND s.birth_date <= ?", q.Birth.First, cmp.Or(q.Birth.Last, afterAll))
	}
	for _, one := range q.Every() {
		if one.Name != "" {
			index = ""
			from := patientapi.FoldName(one.Name)
			to := next(from)
			and(`s.id IN (SELECT id FROM patients WHERE lower(given) >= ? AND lower(given) < ?
			UNION ALL SELECT id FROM patients WHERE lower(family) >= ? AND lower(family) < ?)`, from, to, from, to)
		}
		switch id := one.Identifier; {
		case id.Value != "" && id.System != "":
			index = ""
			and("s.id IN (SELECT patient FROM identifiers WHERE value = ? AND system = ?)", id.Value, id.System)
		case id.Value != "":
			index = ""
			and("s.id IN (SELECT patient FROM identifiers WHERE value = ?)", id.Value)
		case id.System != "": // most patients have one: they are looked at, and not listed first
			and("EXISTS (SELECT 1 FROM identifiers i WHERE i.patient = s.id AND i.system = ?)", id.System)
		}
	}
	if q.IDs != nil {
		index = ""
		and("s.id IN (SELECT value FROM json_each(?))", jsonArray(ids))
	}
	and("s.id > ?", after)
	return "FROM patients s" + index + " WHERE " + strings.Join(where, " AND "), args
}

// afterAll sorts after every date.
const afterAll = "~"

// next returns the first text after all those that begin with prefix, byte by byte.
func next(prefix string) string {
	b := []byte(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] < 0xff {
			b[i]++
			return string(b[:i+1])
		}
	}
	return prefix // nothing is after it, and nobody has such a name
}

const selectObservations = `SELECT o.number, m.code, m.text, m.unit, o.value, o.time, o.version, o.updated
	FROM observations o JOIN measures m ON m.id = o.measure
	WHERE o.patient = ? ORDER BY o.number`

// Observations implements patientapi.Store.
func (s *Store) Observations(ctx context.Context, id string) ([]patientapi.Observation, error) {
	n, err := patientapi.ParseID(id)
	if err != nil {
		return nil, err
	}
	var all []patientapi.Observation
	err = s.each(ctx, s.observations, func(rows *sql.Rows) error {
		o := patientapi.Observation{Patient: id}
		var at, updated int64
		err := rows.Scan(&o.Number, &o.Code, &o.Text, &o.Unit, &o.Value, &at, &o.Version, &updated)
		o.Time, o.Updated = time.Unix(at, 0).UTC(), time.Unix(updated, 0).UTC()
		all = append(all, o)
		return err
	}, n)
	return all, err
}
