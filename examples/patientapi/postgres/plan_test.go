package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/postgrestest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/postgres/db"
)

// recorder keeps the statement instead of asking.
type recorder struct {
	db.DBTX
	statement string
	args      []any
}

var errRecorded = errors.New("recorded")

func (r *recorder) Query(_ context.Context, statement string, args ...any) (pgx.Rows, error) {
	r.statement, r.args = statement, args
	return nil, errRecorded
}

// The plan of each search starts at the index of its condition, and reads only what it
// found. On the few patients of a test everything is cheap, so that reading whole tables
// is forbidden to the planner where it has a choice.
func TestEachSearchUsesItsIndex(t *testing.T) {
	t.Parallel()
	s := open(t, Config{URL: postgrestest.New(t, 0).URL})
	conn, err := s.pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), "SET enable_seqscan = off; SET random_page_cost = 0.1"); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name    string
		q       patientapi.PatientSearch
		indexes []string
	}{
		{"nothing", patientapi.PatientSearch{Limit: 10}, []string{"patients_pkey"}},
		{"ids", patientapi.PatientSearch{IDs: []string{"P000001", "P000007"}}, []string{"ANY ('{1,7}'"}},
		{"identifier", patientapi.PatientSearch{Identifier: patientapi.Identifier{System: "mrn", Value: "MRN-10000007"}}, []string{"identifiers_value", "id = ANY ($"}},
		{"identifier of any system", patientapi.PatientSearch{Identifier: patientapi.Identifier{Value: "MRN-10000007"}}, []string{"identifiers_value", "id = ANY ($"}},
		{"name", patientapi.PatientSearch{Name: "Zadie"}, []string{"patients_given", "patients_family"}},
		{"birth date", patientapi.PatientSearch{Birth: patientapi.Dates{First: "1980-02-03", Last: "1980-02-03"}}, []string{"patients_birth_date"}},
		{"time of change", patientapi.PatientSearch{Updated: patientapi.Times{Since: at, Before: at.Add(time.Hour)}}, []string{"patients_updated"}},
	} {
		params, err := searchParams(c.q)
		require.NoError(t, err)
		var r recorder
		if _, err := db.New(&r).Search(t.Context(), params); !errors.Is(err, errRecorded) {
			t.Fatal(err)
		}
		plan := explain(t, conn.Conn(), r.statement, r.args)
		for _, index := range c.indexes {
			if !strings.Contains(plan, index) {
				t.Errorf("%s: %s is not in the plan\n%s", c.name, index, plan)
			}
		}
		for _, table := range []string{"patients", "identifiers", "visits", "observations"} {
			if strings.Contains(plan, "Seq Scan on "+table+" ") {
				t.Errorf("%s: all of %s is read\n%s", c.name, table, plan)
			}
		}
	}
}

// A plan that is kept for all searches is good for none: after a few calls the server would
// take one, for a statement that has a name.
func TestSearchIsPlannedEachTime(t *testing.T) {
	t.Parallel()
	s := open(t, Config{URL: postgrestest.New(t, 0).URL, Connections: 1})
	var page patientapi.Page
	for range 10 {
		require.NoError(t, s.Search(t.Context(), patientapi.PatientSearch{Name: "a"}, &page))
		require.NoError(t, lookup(t.Context(), s))
	}
	var lookups, searches int
	err := s.pool.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE statement LIKE '-- name: Patient %'),
		count(*) FILTER (WHERE statement LIKE '-- name: Search %') FROM pg_prepared_statements`).Scan(&lookups, &searches)
	if err != nil || lookups != 1 || searches != 0 {
		t.Errorf("%d statements for lookups and %d for searches, %v; want 1 and 0", lookups, searches, err)
	}
}

func explain(t *testing.T, conn *pgx.Conn, statement string, args []any) string {
	t.Helper()
	rows, err := conn.Query(t.Context(), "EXPLAIN "+statement, append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
	require.NoError(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return strings.Join(lines, "\n")
}
