// Package sqlstate says in our words what went wrong with a PostgreSQL. Those of a driver
// or a server repeat the address, the user, and the value that a statement was about.
package sqlstate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

// TooManyConnections is the code of a connection that the server refuses because there
// are as many as it, the database or the role may have. Codes are those of appendix A of
// PostgreSQL's documentation.
const TooManyConnections = "53300"

// UndefinedTable is the code of a statement about a table that the database does not have.
const UndefinedTable = "42P01"

// conditions say what a code, or its class, means.
var conditions = map[string]string{
	TooManyConnections: "too many connections for the server: raise its max_connections or lower --connections",
	"28P01":            "the server refused user or password",
	"3D000":            "the server has no such database",
	"42501":            "the role may not do that",
	UndefinedTable:     "a table is missing: the database was made anew, or is another one",
	"42P07":            "the database has a table of that name",
	"25006":            "the server takes no writes: it is a standby, or set to read-only",
	"53100":            "the disk of the server is full",
	"57014":            "the statement was cancelled",
	"28":               "the server refused the login",
	"08":               "the connection failed",
	"53":               "the server is out of resources",
	"57":               "the server is stopping, starting, or cut the connection",
}

// bounds say whose connections are too many, by the function of the server that refused:
// its text depends on the language.
var bounds = map[string]string{
	"InitializeSessionUserId": "too many connections for the role: raise its CONNECTION LIMIT or lower --connections",
	"CheckMyDatabase":         "too many connections for the database: raise its CONNECTION LIMIT or lower --connections",
}

// Cause says what err means.
func Cause(err error) string {
	if fault, ok := errors.AsType[*pgconn.PgError](err); ok {
		text := "the statement failed"
		for _, known := range []string{conditions[fault.Code[:min(2, len(fault.Code))]], conditions[fault.Code], bound(fault)} {
			if known != "" {
				text = known
			}
		}
		return text + " (SQLSTATE " + fault.Code + ")"
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return "the name of its host is not known"
		}
		return "the name of its host could not be resolved"
	}
	if pgconn.Timeout(err) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		return "the server did not answer in time"
	}
	if errors.Is(err, context.Canceled) {
		return "given up, because whoever asked has left"
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
		return "the connection failed"
	}
	return fmt.Sprintf("unexpected (%T)", err)
}

func bound(fault *pgconn.PgError) string {
	if fault.Code == TooManyConnections {
		return bounds[fault.Routine]
	}
	return ""
}

// CodeOf returns the SQLSTATE of what the server said; empty if it said nothing.
func CodeOf(err error) string {
	if fault, ok := errors.AsType[*pgconn.PgError](err); ok {
		return fault.Code
	}
	return ""
}
