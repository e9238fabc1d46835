package sqlite

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"

	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/internal/storetest"
)

// A file of before clinicians had addresses is brought up to date, with the same
// answers as one that is made today.
func TestFileFromBeforeAddressesGetsThem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "patients.db")
	s := openSet(t, path, Options{})
	files, err := fs.Sub(migrations, "migrations")
	require.NoError(t, err)
	provider, err := goose.NewProvider(goose.DialectSQLite3, s.writer, files)
	require.NoError(t, err)
	if _, err := provider.DownTo(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.writer.Exec("SELECT 1 FROM mailboxes"); err == nil {
		t.Fatal("the file is not an old one")
	}
	s.Close()
	storetest.Clinicians(t, openSet(t, path, Options{}))
}

func TestLookupOfCliniciansReadsNoWholeTable(t *testing.T) {
	s := openSet(t, filepath.Join(t.TempDir(), "patients.db"), Options{})
	for _, step := range explain(t, s, selectClinicians, "a@b", "c") {
		if !strings.HasPrefix(step, "SEARCH") {
			t.Errorf("the plan: %s", step)
		}
	}
}
