package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A process on the roll has a file beside that of the records, which is there until it
// leaves. While it lives it holds SQLite's lock on it, which the system takes away when it
// is killed, on every system.

// entry is such a file, held.
type entry struct {
	path  string
	since time.Time
	db    *sql.DB
}

const entryMark = "-writer-"

// Enter implements audit.Roll. One Writer at a time may use a Storage.
func (s *Storage) Enter(ctx context.Context, ended func(since time.Time) error) error {
	gone, err := s.enter(ctx)
	for _, e := range gone {
		if ended(e.since) == nil {
			err = errors.Join(err, e.strike())
		} else {
			err = errors.Join(err, e.close())
		}
	}
	return err
}

// enter makes the file of this process, and holds those of processes that live no more.
// One process at a time does so: a file that nobody holds yet would pass for one of the
// dead.
func (s *Storage) enter(ctx context.Context) (gone []*entry, err error) {
	tx, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	files, err := os.ReadDir(filepath.Dir(s.path))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), filepath.Base(s.path)+entryMark) {
			continue
		}
		// Who holds one lives; what cannot be read is not ours to judge.
		if e, err := hold(ctx, filepath.Join(filepath.Dir(s.path), f.Name())); err == nil {
			gone = append(gone, e)
		}
	}
	if s.entered != nil {
		return gone, nil
	}
	path := s.path + entryMark + rand.Text()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		s.entered, err = hold(ctx, path)
	}
	return gone, err
}

// hold takes the lock of a file, if nobody has it.
func hold(ctx context.Context, path string) (*entry, error) {
	address, err := address(path, "mode=rw", pragma("busy_timeout", "0"))
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", address)
	if err != nil {
		return nil, err
	}
	e := &entry{path: path, db: db}
	db.SetMaxOpenConns(1)
	db.SetConnMaxLifetime(0)
	_, err = db.ExecContext(ctx, "BEGIN EXCLUSIVE")
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(path); err == nil { // it may have been struck off meanwhile
			e.since = info.ModTime()
			return e, nil
		}
	}
	return nil, errors.Join(err, e.close())
}

func (e *entry) close() error { return e.db.Close() }

// strike removes the file; after it is closed where the system wants that.
func (e *entry) strike() error {
	early := os.Remove(e.path)
	err := e.close()
	if early != nil {
		err = errors.Join(err, os.Remove(e.path))
	}
	return err
}

// Leave implements audit.Roll.
func (s *Storage) Leave(context.Context) error {
	if s.entered == nil {
		return nil
	}
	e := s.entered
	s.entered = nil
	return e.strike()
}
