// Package sqlite keeps patients and clinicians in a SQLite file: one writer, a
// pool of readers, and one statement that answers a lookup.
package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/gauge"
	"github.com/spillway-go/spillway/examples/patientapi/internal/migrate"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Options says how a file is opened. The zero value works.
type Options struct {
	// Readers is how many connections may read at one time. Zero means
	// GOMAXPROCS, at least 4: SQLite reads from memory most of the time, so more
	// connections than processors only wait for each other.
	Readers int

	// build gives up safety against a crash for speed. Only for a file that
	// nobody knows of yet.
	build bool
}

// Store finds patients and clinicians in a SQLite file.
type Store struct {
	writer  *sql.DB
	readers *sql.DB
	max     int // readers
	one     *sql.Stmt
	many    *sql.Stmt

	clinicians   *sql.Stmt
	observations *sql.Stmt
	searches     searches

	ongoing gauge.Gauge
}

// Open opens the file, makes it, with the mode 0600, if it does not exist, and brings its schema up
// to date. A new file has no patients: see Seed and OpenSet.
func Open(ctx context.Context, path string, opts Options) (*Store, error) {
	if opts.Readers < 0 {
		return nil, fmt.Errorf("sqlite: %d readers: want a positive number, or 0 for the default", opts.Readers)
	}
	if opts.Readers == 0 {
		opts.Readers = max(runtime.GOMAXPROCS(0), 4)
	}
	s, err := open(ctx, path, opts)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %s: %w", path, err)
	}
	return s, nil
}

func open(ctx context.Context, path string, opts Options) (_ *Store, err error) {
	s := &Store{max: opts.Readers}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	// SQLite would make a file that all users can read. Those that it puts beside
	// it get the same mode.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err = f.Close(); err != nil {
		return nil, err
	}
	journal, synchronous := "WAL", "NORMAL"
	if opts.build {
		journal, synchronous = "OFF", "OFF"
	}
	if s.writer, err = connect(path, "_txlock=immediate", pragma("journal_mode", journal), pragma("synchronous", synchronous)); err != nil {
		return nil, err
	}
	s.writer.SetMaxOpenConns(1)
	if err = migrate.Up(ctx, goose.DialectSQLite3, s.writer, migrations); err != nil {
		return nil, err
	}
	if opts.build {
		return s, nil
	}
	if s.readers, err = connect(path, pragma("query_only", "1")); err != nil {
		return nil, err
	}
	s.readers.SetMaxOpenConns(opts.Readers)
	s.readers.SetMaxIdleConns(opts.Readers)
	if s.one, err = s.readers.PrepareContext(ctx, selectOne); err != nil {
		return nil, err
	}
	if s.many, err = s.readers.PrepareContext(ctx, selectMany); err != nil {
		return nil, err
	}
	if s.clinicians, err = s.readers.PrepareContext(ctx, selectClinicians); err != nil {
		return nil, err
	}
	s.observations, err = s.readers.PrepareContext(ctx, selectObservations)
	return s, err
}

func connect(path string, settings ...string) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	dsn := "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() +
		"?" + pragma("busy_timeout", "10000") + "&" + pragma("foreign_keys", "1")
	for _, s := range settings {
		dsn += "&" + s
	}
	return sql.Open("sqlite", dsn)
}

func pragma(name, value string) string { return "_pragma=" + name + "(" + value + ")" }

// Ping implements patientapi.Store.
func (s *Store) Ping(ctx context.Context) error { return s.readers.PingContext(ctx) }

// Close implements io.Closer.
func (s *Store) Close() error {
	var first error
	for _, db := range []*sql.DB{s.readers, s.writer} { // the last to close checkpoints
		if db == nil {
			continue
		}
		if err := db.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Connections returns the use of the read pool so far.
func (s *Store) Connections() patientapi.Connections {
	return patientapi.Connections{
		Max:  s.max,
		Open: s.readers.Stats().OpenConnections,
		Peak: min(s.ongoing.Peak(), s.max), // a call beyond the maximum waits for a connection
	}
}
