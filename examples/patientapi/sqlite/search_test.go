package sqlite

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

var (
	oneOf   = []string{"P000042"}
	known   = patientapi.Identifier{System: "mrn", Value: "MRN-10000042"}
	born    = patientapi.Dates{First: "1980-01-01", Last: "1980-12-31"}
	changed = patientapi.Times{Since: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)}
)

// plan returns the steps in which SQLite answers q.
func plan(t *testing.T, s *Store, q patientapi.PatientSearch) []string {
	t.Helper()
	ids, after, err := q.Numbers()
	require.NoError(t, err)
	query, args := search(q, ids, after)
	return explain(t, s, query, args...)
}

func explain(t *testing.T, s *Store, query string, args ...any) (steps []string) {
	t.Helper()
	rows, err := s.readers.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var step string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &step))
		steps = append(steps, step)
	}
	require.NoError(t, rows.Err())
	return steps
}

// The set is small. The plan is the same for a large one: there are no statistics.
func TestNoSearchReadsAWholeTable(t *testing.T) {
	s := openSet(t, filepath.Join(t.TempDir(), "patients.db"), Options{})
	for set := range 1 << 6 {
		var q patientapi.PatientSearch
		for k, add := range []func(){
			func() { q.IDs = oneOf }, func() { q.Identifier = known }, func() { q.Name = "a" },
			func() { q.Birth = born }, func() { q.Updated = changed }, func() { q.After = "P000001" },
		} {
			if set>>k&1 == 1 {
				add()
			}
		}
		for _, step := range plan(t, s, q) {
			table, scan := strings.CutPrefix(step, "SCAN ")
			if scan && table != "page" && !strings.HasPrefix(table, "json_each ") && !strings.HasPrefix(table, "(subquery") {
				t.Errorf("%06b: %s", set, step)
			}
		}
	}
}

func TestLookupOfCliniciansReadsNoWholeTable(t *testing.T) {
	s := openSet(t, filepath.Join(t.TempDir(), "patients.db"), Options{})
	for _, step := range explain(t, s, selectClinicians, "a@b", "c") {
		if !strings.HasPrefix(step, "SEARCH") {
			t.Errorf("the plan: %s", step)
		}
	}
}

// Which names and identifiers are asked for in which order is up to callers: each order was a
// statement that was kept for ever.
func TestStatementsThatAreKeptAreBounded(t *testing.T) {
	s := openSet(t, filepath.Join(t.TempDir(), "patients.db"), Options{})
	var page patientapi.Page
	for i := range 2 * mostSearches {
		q := patientapi.PatientSearch{Name: "a"}
		for bit := range 8 {
			also := patientapi.Also{Name: "a"}
			if i>>bit&1 == 1 {
				also = patientapi.Also{Identifier: known}
			}
			q.Also = append(q.Also, also)
		}
		require.NoError(t, s.Search(t.Context(), q, &page))
		if n, err := s.Count(t.Context(), q); err != nil || n != len(page.Patients) {
			t.Fatalf("%v: %d of %d", err, n, len(page.Patients))
		}
	}
	if n := len(s.searches.by); n > mostSearches {
		t.Errorf("%d statements are kept", n)
	}
}

// Whatever begins with prefix, and nothing else, is from prefix to next(prefix).
func FuzzNext(f *testing.F) {
	f.Add("a", "ab")
	f.Add("a\xff", "a\xff\xff")
	f.Add("\xff", "")
	f.Fuzz(func(t *testing.T, prefix, name string) {
		if prefix == strings.Repeat("\xff", len(prefix)) {
			return // has no end, and no name begins with it
		}
		for _, s := range []string{name, prefix + name} {
			if between := prefix <= s && s < next(prefix); between != strings.HasPrefix(s, prefix) {
				t.Errorf("%q is between %q and %q: %v", s, prefix, next(prefix), between)
			}
		}
	})
}
