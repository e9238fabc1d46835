package app

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/spillway-go/spillway/examples/patientapi/internal/postgrestest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

// What the runbook says about another key of the audit works: the old chain is put aside
// and stays whole, and a new one begins.
func TestTheKeyOfTheAuditIsChangedAsTheRunbookSays(t *testing.T) {
	text, err := os.ReadFile("../../../docs/operate/runbook.md")
	require.NoError(t, err)
	said := regexp.MustCompile("(?s)```sql\n(.*?)```").FindSubmatch(text)
	if said == nil {
		t.Fatal("the runbook has no statements")
	}
	db := postgrestest.New(t, 0)
	keys := map[string]string{}
	serve := func(key string) {
		keys[key] = filepath.Join(t.TempDir(), key)
		require.NoError(t, os.WriteFile(keys[key], []byte(strings.Repeat(key, 8)), 0o600))
		c := quick()
		c.Store.Kind, c.Audit.Mode, c.Audit.KeyFile, c.Audit.FailClosed = db.URL, auditOn, keys[key], true
		r := start(t, c)
		if status, body := r.get(t, "/api/v1/patients/P000042"); status != 200 {
			t.Errorf("%d %s", status, body)
		}
		r.end(t)
	}
	serve("before")
	conn, err := pgx.Connect(t.Context(), db.URL)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), string(said[1])); err != nil {
		t.Fatal(err)
	}
	serve("afterwards")
	mark := "?"
	if strings.Contains(db.URL, "?") {
		mark = "&"
	}
	for key, url := range map[string]string{"before": db.URL + mark + "search_path=audit_2026", "afterwards": db.URL} {
		if out, err := verify(t, VerifyCommand{Store: url, KeyFile: keys[key]}); err != nil || !strings.HasPrefix(out, "1 records") {
			t.Errorf("%s: %v\n%s", key, err, out)
		}
	}
}
