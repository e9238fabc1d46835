// Package sqlite keeps audit records in a SQLite file of their own, which several
// processes may use at one time.
package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/pressly/goose/v3"
	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/spillway-go/spillway/examples/patientapi/audit"
	"github.com/spillway-go/spillway/examples/patientapi/internal/migrate"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Storage is an audit.Storage. A commit is on the disk before Append returns.
type Storage struct {
	path    string
	file    os.FileInfo // what was opened
	writer  *sql.DB     // one connection
	readers *sql.DB

	tip, insert, set *sql.Stmt

	entered *entry // nil before Enter
}

// DefaultPath returns where records are kept unless said otherwise: in the user's
// folder for what must stay, not in the one for what can be made again.
func DefaultPath() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("no folder for the audit records (%w): name a file instead", err)
	}
	return filepath.Join(dir, "spillway", "audit.db"), nil
}

// Open opens the file, makes it if it does not exist, and brings its schema up to date.
// What it makes, only this user can read: the file has the mode 0600, and folders 0700.
func Open(ctx context.Context, path string) (*Storage, error) {
	s := new(Storage)
	if err := s.open(ctx, path); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("the audit records in %s: %w", path, err)
	}
	return s, nil
}

// OpenExisting is Open for a file that exists. It writes nothing. The error of a file that can be read
// and is not one of records, or no longer, matches audit.ErrNoRecords.
func OpenExisting(ctx context.Context, path string) (*Storage, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("the audit records: %w", err)
	}
	s := new(Storage)
	var err error
	if s.readers, err = connect(path, "mode=ro"); err == nil {
		if _, err = s.readers.ExecContext(ctx, selectTip); err == nil {
			return s, nil
		}
		_ = s.Close()
	}
	if failed, ok := errors.AsType[*driver.Error](err); ok {
		switch failed.Code() & 0xff {
		case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB: // the first: without these tables
			return nil, fmt.Errorf("%s holds %w: %w", path, audit.ErrNoRecords, err)
		}
	}
	return nil, fmt.Errorf("the audit records in %s: %w", path, err)
}

func (s *Storage) open(ctx context.Context, path string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	// SQLite would make a file that all users can read. Those that it puts beside it get
	// the same mode.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	s.path = path
	s.file, err = private(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	s.writer, err = connect(path, "_txlock=immediate", pragma("journal_mode", "WAL"), pragma("synchronous", "FULL"))
	if err != nil {
		return err
	}
	s.writer.SetMaxOpenConns(1)
	if err := bringUp(ctx, s.writer); err != nil {
		return err
	}
	if s.readers, err = connect(path, pragma("query_only", "1")); err != nil {
		return err
	}
	for stmt, text := range map[**sql.Stmt]string{&s.tip: selectTip, &s.insert: insertBlock, &s.set: setHead} {
		if *stmt, err = s.writer.PrepareContext(ctx, text); err != nil {
			return err
		}
	}
	_, err = s.writer.ExecContext(ctx, "PRAGMA busy_timeout = 20") // from here on: see lock
	return err
}

// private takes the file from other users, and returns what it is.
func private(f *os.File) (os.FileInfo, error) {
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular(): // a device is not ours to take
		return nil, errors.New("it is not a file")
	case info.Mode().Perm()&0o077 == 0 || runtime.GOOS == "windows":
		return info, nil
	}
	return info, f.Chmod(0o600)
}

func connect(path string, settings ...string) (*sql.DB, error) {
	address, err := address(path, append(settings, pragma("busy_timeout", "10000"))...)
	if err != nil {
		return nil, err
	}
	return sql.Open("sqlite", address)
}

func address(path string, settings ...string) (string, error) {
	path, err := filepath.Abs(path)
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?" + strings.Join(settings, "&"), err
}

func pragma(name, value string) string { return "_pragma=" + name + "(" + value + ")" }

const schemaTable = "audit_schema"

// bringUp brings the tables up to date. It tries again when another process has done the same at
// the same time.
func bringUp(ctx context.Context, db *sql.DB) (err error) {
	for range 5 {
		if err = migrate.Up(ctx, goose.DialectSQLite3, db, migrations, goose.WithTableName(schemaTable)); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// Close implements audit.Storage.
func (s *Storage) Close() error {
	var all error
	if s.entered != nil {
		all = s.entered.close()
	}
	for _, db := range []*sql.DB{s.readers, s.writer} { // the last to close checkpoints
		if db != nil {
			all = errors.Join(all, db.Close())
		}
	}
	return all
}

const (
	selectTip   = `SELECT sequence, hash, seal, first, records FROM (SELECT 1) LEFT JOIN audit_head LEFT JOIN (SELECT * FROM audit_blocks ORDER BY first DESC LIMIT 1)`
	selectAll   = `SELECT first, records FROM audit_blocks ORDER BY first`
	insertBlock = `INSERT INTO audit_blocks VALUES (?, ?)`
	setHead     = `INSERT INTO audit_head VALUES (1, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET sequence = excluded.sequence, hash = excluded.hash, seal = excluded.seal`
)

// Append implements audit.Storage. Calls of one process wait for each other.
func (s *Storage) Append(ctx context.Context, extend func(audit.Tip) (audit.Block, audit.Head, error)) error {
	if err := s.present(); err != nil {
		return err
	}
	tx, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	tip, err := audit.ScanTip(tx.StmtContext(ctx, s.tip).QueryRowContext(ctx))
	if err != nil {
		return err
	}
	block, head, err := extend(tip)
	if err != nil {
		return err
	}
	if _, err := tx.StmtContext(ctx, s.insert).ExecContext(ctx, block.First, string(block.Records)); err != nil {
		return err
	}
	if _, err := tx.StmtContext(ctx, s.set).ExecContext(ctx, head.Sequence, head.Hash[:], head.Seal[:]); err != nil {
		return err
	}
	return tx.Commit()
}

// present finds a file that was removed or replaced, which SQLite would go on writing to:
// what it says then is lost with the process.
func (s *Storage) present() error {
	info, err := os.Stat(s.path)
	if err != nil || !os.SameFile(info, s.file) {
		return errors.New("the file of the audit records was removed or replaced: put it back, or start the service again")
	}
	return nil
}

// lock begins a transaction, which takes the lock of the file. While SQLite waits for it
// by itself, it looks at no context, and asks the less often the longer it waits. So it
// waits briefly, again and again: that ends with ctx, and a process that commits all the
// time does not keep this one out.
func (s *Storage) lock(ctx context.Context) (*sql.Tx, error) {
	for {
		tx, err := s.writer.BeginTx(ctx, nil)
		if busy, ok := errors.AsType[*driver.Error](err); ok && busy.Code()&0xff == sqlite3.SQLITE_BUSY && ctx.Err() == nil {
			continue
		}
		return tx, err
	}
}

// Read implements audit.Storage.
func (s *Storage) Read(ctx context.Context, look func(audit.Head, iter.Seq2[audit.Block, error]) error) error {
	tx, err := s.readers.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	tip, err := audit.ScanTip(tx.QueryRowContext(ctx, selectTip)) // from here on the transaction sees the same
	if err != nil {
		return err
	}
	return look(tip.Head, func(yield func(audit.Block, error) bool) {
		rows, err := tx.QueryContext(ctx, selectAll)
		if err != nil {
			yield(audit.Block{}, err)
			return
		}
		defer rows.Close()
		audit.EachBlock(rows, yield)
	})
}
