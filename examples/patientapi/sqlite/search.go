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

// prepare returns the statement of a query, or nil if as many as may be are kept.
func (s *searches) prepare(ctx context.Context, db *sql.DB, query string) (*sql.Stmt, error) {
	s.mu.Lock()
	stmt, full := s.by[query], len(s.by) >= mostSearches
	s.mu.Unlock()
	if stmt != nil || full {
		return stmt, nil
	}
	stmt, err := db.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.by[query]; other != nil {
		stmt.Close()
		return other, nil
	}
	if s.by == nil {
		s.by = map[string]*sql.Stmt{}
	}
	s.by[query] = stmt
	return stmt, nil
}

// Search implements patientapi.Store.
func (s *Store) Search(ctx context.Context, q patientapi.PatientSearch, dst *patientapi.Page) error {
	dst.Clear()
	ids, after, err := q.Numbers()
	if err != nil {
		return err
	}
	query, args := search(q, ids, after)
	s.ongoing.Enter()
	defer s.ongoing.Leave()
	rows, err := s.ask(ctx, query, args)
	if err != nil {
		return failed(ctx, err)
	}
	defer rows.Close()
	for size := q.PageSize(); rows.Next(); {
		if len(dst.Patients) == size {
			dst.More = true
			return nil
		}
		if _, err := scan(rows, dst.Next()); err != nil {
			dst.Clear()
			return failed(ctx, err)
		}
	}
	if err := rows.Err(); err != nil {
		dst.Clear()
		return failed(ctx, err)
	}
	return nil
}

// ask runs a search, by a statement that is kept if there is room.
func (s *Store) ask(ctx context.Context, query string, args []any) (*sql.Rows, error) {
	stmt, err := s.searches.prepare(ctx, s.readers, query)
	if err != nil {
		return nil, err
	}
	if stmt == nil {
		return s.readers.QueryContext(ctx, query, args...)
	}
	return stmt.QueryContext(ctx, args...)
}

// Count implements patientapi.Store.
func (s *Store) Count(ctx context.Context, q patientapi.PatientSearch) (count int, err error) {
	q.After = ""
	ids, after, err := q.Numbers()
	if err != nil {
		return 0, err
	}
	found, args := matching(q, ids, after)
	s.ongoing.Enter()
	defer s.ongoing.Leave()
	rows, err := s.ask(ctx, "SELECT count(*) "+found, args)
	if err != nil {
		return 0, failed(ctx, err)
	}
	defer rows.Close()
	if rows.Next() {
		err = rows.Scan(&count)
	}
	if err = cmp.Or(err, rows.Err()); err != nil {
		return 0, failed(ctx, err)
	}
	return count, nil
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
	s.ongoing.Enter()
	defer s.ongoing.Leave()
	rows, err := s.observations.QueryContext(ctx, n)
	if err != nil {
		return nil, failed(ctx, err)
	}
	defer rows.Close()
	var all []patientapi.Observation
	for rows.Next() {
		o := patientapi.Observation{Patient: id}
		var at, updated int64
		if err := rows.Scan(&o.Number, &o.Code, &o.Text, &o.Unit, &o.Value, &at, &o.Version, &updated); err != nil {
			return nil, failed(ctx, err)
		}
		o.Time, o.Updated = time.Unix(at, 0).UTC(), time.Unix(updated, 0).UTC()
		all = append(all, o)
	}
	if err := rows.Err(); err != nil {
		return nil, failed(ctx, err)
	}
	return all, nil
}
