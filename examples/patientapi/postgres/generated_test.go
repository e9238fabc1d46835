package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

func TestGeneratedCodeIsUpToDate(t *testing.T) {
	migrated, err := filepath.Glob("migrations/*.sql") // in the order of the shell
	require.NoError(t, err)
	sum := sha256.New()
	for _, name := range append([]string{"sqlc.yaml", "queries.sql"}, migrated...) {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		_, _ = sum.Write(text)
	}
	recorded, err := os.ReadFile("db/sources.sha256")
	require.NoError(t, err)
	if from, _, _ := strings.Cut(string(recorded), " "); from != hex.EncodeToString(sum.Sum(nil)) {
		t.Error("package db was generated from other queries or tables: run go generate in this folder")
	}
}
