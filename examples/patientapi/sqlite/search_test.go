package sqlite

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
)

var (
	oneOf   = []string{"P000042"}
	known   = patientapi.Identifier{System: "mrn", Value: "MRN-10000042"}
	anyKind = patientapi.Identifier{Value: "MRN-10000042"}
	born    = patientapi.Dates{First: "1980-01-01", Last: "1980-12-31"}
	changed = patientapi.Times{Since: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)}
)

// plan returns the steps in which SQLite answers q.
func plan(t *testing.T, s *Store, q patientapi.PatientSearch) []string {
	t.Helper()
	ids, after, err := q.Numbers()
	if err != nil {
		t.Fatal(err)
	}
	query, args := search(q, ids, after)
	return explain(t, s, query, args...)
}

func explain(t *testing.T, s *Store, query string, args ...any) (steps []string) {
	t.Helper()
	rows, err := s.readers.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, step)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return steps
}

func TestEachConditionIsFoundInItsIndex(t *testing.T) {
	s := openSet(t, filepath.Join(t.TempDir(), "patients.db"), Options{})
	for _, c := range []struct {
		want string
		q    patientapi.PatientSearch
	}{
		{"SEARCH s USING INTEGER PRIMARY KEY (rowid>?)", patientapi.PatientSearch{}},
		{"SEARCH s USING INTEGER PRIMARY KEY (rowid=?)", patientapi.PatientSearch{IDs: oneOf}},
		{"SEARCH identifiers USING COVERING INDEX identifiers_value (value=?)", patientapi.PatientSearch{Identifier: anyKind}},
		{"SEARCH identifiers USING COVERING INDEX identifiers_value (value=? AND system=?)", patientapi.PatientSearch{Identifier: known}},
		{"SEARCH patients USING COVERING INDEX patients_given (<expr>>? AND <expr><?)", patientapi.PatientSearch{Name: "an"}},
		{"SEARCH patients USING COVERING INDEX patients_family (<expr>>? AND <expr><?)", patientapi.PatientSearch{Name: "An"}},
		{"SEARCH s USING COVERING INDEX patients_birth_date (birth_date>? AND birth_date<?)", patientapi.PatientSearch{Birth: born}},
		{"SEARCH s USING COVERING INDEX patients_updated (updated>? AND updated<?)", patientapi.PatientSearch{Updated: changed}},
		{"SEARCH s USING INDEX patients_birth_date (birth_date>? AND birth_date<?)", patientapi.PatientSearch{Birth: born, Updated: changed}},
	} {
		if steps := plan(t, s, c.q); !slices.Contains(steps, c.want) {
			t.Errorf("%s is not in the plan:\n%s", c.want, strings.Join(steps, "\n"))
		}
	}
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

func TestObservationsAreReadInOneRange(t *testing.T) {
	s := openSet(t, filepath.Join(t.TempDir(), "patients.db"), Options{})
	if steps := explain(t, s, selectObservations, 42); !slices.Contains(steps, "SEARCH o USING PRIMARY KEY (patient=?)") {
		t.Errorf("the plan:\n%s", strings.Join(steps, "\n"))
	}
}

// Statements are kept by their text: as many as there are ways to search, however many searches there are.
func TestStatementsOfSearchesAreKept(t *testing.T) {
	s := openSet(t, filepath.Join(t.TempDir(), "patients.db"), Options{})
	var page patientapi.Page
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var page patientapi.Page
			for i := range 50 {
				q := patientapi.PatientSearch{Identifier: known, Name: strings.Repeat("a", i+1), Limit: i + 1}
				if err := s.Search(t.Context(), q, &page); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := s.Search(t.Context(), patientapi.PatientSearch{Name: "b"}, &page); err != nil {
		t.Error(err)
	}
	if len(s.searches.by) != 2 {
		t.Errorf("%d statements are kept for 2 ways to search", len(s.searches.by))
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
		if err := s.Search(t.Context(), q, &page); err != nil {
			t.Fatal(err)
		}
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
