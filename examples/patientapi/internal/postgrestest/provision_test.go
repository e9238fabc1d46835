package postgrestest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/spillway-go/spillway/examples/patientapi/internal/postgrestest"
	"github.com/spillway-go/spillway/examples/patientapi/postgres/provision"
)

const tooManyConnections = "53300"

func TestRoleOwnsItsDatabaseAndMayHaveOnlySoManyConnections(t *testing.T) {
	d := postgrestest.New(t, 2)
	connect := func() error {
		conn, err := pgx.Connect(t.Context(), d.URL)
		if err != nil {
			return err
		}
		t.Cleanup(func() { conn.Close(t.Context()) })
		_, err = conn.Exec(t.Context(), "CREATE TABLE IF NOT EXISTS a (b int)")
		return err
	}
	for range 2 {
		if err := connect(); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(err error) bool {
		fault, ok := errors.AsType[*pgconn.PgError](err)
		return ok && fault.Code == tooManyConnections
	}
	if err := connect(); !refused(err) {
		t.Errorf("a third connection: %v", err)
	}
	if err := d.Limit(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	if err := connect(); err != nil {
		t.Errorf("with one more: %v", err)
	}
	for range 2 { // with connections open
		if err := d.Drop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := connect(); err == nil {
		t.Error("the database is still there")
	}
}

func TestErrorsDoNotShowTheSuperuser(t *testing.T) {
	for _, admin := range []string{
		"",
		"host=localhost password=opensesame",
		"postgres://root:opensesame@127.0.0.1:1/postgres",
		"postgres://root:opensesame@127.0.0.1:notaport/postgres",
		"postgres://root:open%sesame@127.0.0.1/postgres",
		"mysql://root:opensesame@127.0.0.1/postgres",
	} {
		_, err := provision.New(t.Context(), admin, 0)
		if err == nil || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%q: %v", admin, err)
		}
	}
}
