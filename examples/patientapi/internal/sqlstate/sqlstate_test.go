package sqlstate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestCausesSayWhatToDoAndRepeatNothing(t *testing.T) {
	said := func(code, routine string) error {
		return fmt.Errorf("sesame: %w", errors.Join(errors.New("sesame"), &pgconn.PgError{Code: code, Routine: routine, Message: "sesame", Detail: "sesame"}))
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{said(TooManyConnections, "InitializeSessionUserId"), "too many connections for the role: raise its CONNECTION LIMIT or lower --connections (SQLSTATE 53300)"},
		{said(TooManyConnections, "CheckMyDatabase"), "for the database"},
		{said(TooManyConnections, "InitPostgres"), "max_connections"},
		{said("42P01", ""), "a table is missing"},
		{said("53400", ""), "out of resources (SQLSTATE 53400)"},
		{said("XX000", ""), "the statement failed (SQLSTATE XX000)"},
		{said("", ""), "the statement failed"},
		{context.DeadlineExceeded, "in time"},
		{context.Canceled, "given up"},
		{fmt.Errorf("sesame: %w", io.EOF), "the connection failed"},
		{errors.New("sesame"), "unexpected (*errors.errorString)"},
	} {
		if got := Cause(c.err); !strings.Contains(got, c.want) || strings.Contains(got, "sesame") {
			t.Errorf("%v: %s, want %s", c.err, got, c.want)
		}
	}
	if CodeOf(said("42P01", "")) != "42P01" || CodeOf(io.EOF) != "" {
		t.Error("codes")
	}
}
