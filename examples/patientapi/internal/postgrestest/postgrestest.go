// Package postgrestest gives tests a database of their own on a real PostgreSQL.
package postgrestest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/postgres/provision"
)

// New returns a fresh database and its role, which may have that many connections,
// zero for the usual; both are gone after the test. The server is that of
// SPILLWAY_POSTGRES, the URL of a superuser, or this machine's. Without one the test is
// skipped, unless SPILLWAY_REQUIRE says that there has to be one.
func New(t testing.TB, connections int) *provision.Database {
	t.Helper()
	admin := cmp.Or(os.Getenv("SPILLWAY_POSTGRES"), "postgres://postgres@127.0.0.1:5432/postgres")
	if err := ping(t.Context(), admin); err != nil {
		missing := fmt.Sprintf("no PostgreSQL for the tests (%v): run scripts/ensure-postgres.sh FOLDER and set SPILLWAY_POSTGRES to what is in FOLDER/address", err)
		if slices.Contains(strings.Split(os.Getenv("SPILLWAY_REQUIRE"), ","), "postgres") {
			t.Fatal(missing)
		}
		t.Skip("SKIPPED, the store was not tried on a real PostgreSQL: " + missing)
	}
	d, err := provision.New(t.Context(), admin, connections)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := d.Drop(context.Background()); err != nil { // the context of the test has ended
			t.Error(err)
		}
	})
	return d
}

func ping(ctx context.Context, admin string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}
