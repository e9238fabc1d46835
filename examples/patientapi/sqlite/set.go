package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spillway-go/spillway/examples/patientapi"
)

// DefaultPath returns where a set is kept unless said otherwise: a file of its
// own in the user's cache folder.
func DefaultPath(set Set) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("sqlite: no cache folder for the database (%w): name a file instead", err)
	}
	name := fmt.Sprintf("patients-v%d-%d-%d.db", patientapi.GeneratorVersion, set.Patients, set.Seed)
	return filepath.Join(dir, "spillway", name), nil
}

// OpenSet opens the file at path, which holds that set of people. A file that
// does not exist is made first, under another name, so that path is never seen
// half-written, however the making ends; two processes may make it at once. A
// file that holds another set is an error and is left alone.
//
// What it makes, only this user can read: the file has the mode 0600, and folders
// 0700. A file that is there already is brought to 0600.
//
// It calls progress, if that is not nil, with the number of patients written.
func OpenSet(ctx context.Context, path string, set Set, opts Options, progress func(done int)) (*Store, error) {
	if err := set.Check(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := build(ctx, path, set, progress); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	if err := inspect(ctx, path, set); err != nil {
		return nil, err
	}
	if err := private(path); err != nil {
		return nil, fmt.Errorf("sqlite: cannot keep other users from reading the database: %w", err)
	}
	return Open(ctx, path, opts)
}

// private takes a patient database, and the files that SQLite puts beside it, from
// the other users of the machine: an earlier version left them readable.
func private(path string) error {
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && name != path:
			continue
		case err != nil:
			return err
		case info.Mode().Perm()&0o077 == 0 || runtime.GOOS == "windows":
			continue
		}
		if err := os.Chmod(name, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// inspect reads whether the file holds the set. It comes before Open, which
// would bring anybody's database to our schema.
func inspect(ctx context.Context, path string, want Set) error {
	db, err := connect(path, "mode=ro")
	if err != nil {
		return fmt.Errorf("sqlite: %s: %w", path, err)
	}
	defer db.Close()
	have, version, err := holds(ctx, db)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("sqlite: %s is not a patient database (%w): name another file, or one that does not exist yet", path, err)
	case have == (Set{}):
		return fmt.Errorf("sqlite: %s holds no patients: name another file, or one that does not exist yet", path)
	case version != patientapi.GeneratorVersion:
		return fmt.Errorf("sqlite: %s was made by generator version %d, this one is %d: remove it, or name another file", path, version, patientapi.GeneratorVersion)
	case have != want:
		return fmt.Errorf("sqlite: %s holds %d patients of seed %d, not %d of seed %d: ask for those, or name another file",
			path, have.Patients, have.Seed, want.Patients, want.Seed)
	}
	return nil
}

// build makes the file at path, or leaves the one that another process made
// meanwhile.
func build(ctx context.Context, path string, set Set, progress func(int)) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("sqlite: cannot make the database folder: %w", err)
	}
	// A folder of its own also takes the files that SQLite puts beside.
	tmp, err := os.MkdirTemp(dir, ".building-")
	if err != nil {
		return fmt.Errorf("sqlite: cannot write into the database folder: %w", err)
	}
	defer os.RemoveAll(tmp)
	draft := filepath.Join(tmp, filepath.Base(path))
	if err := write(ctx, draft, set, progress); err != nil {
		return fmt.Errorf("sqlite: making %s: %w", path, err)
	}
	// A link, unlike a rename, never replaces a file that somebody has open.
	err = os.Link(draft, path)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil { // a file system without links
		err = os.Rename(draft, path)
	}
	return err
}

func write(ctx context.Context, path string, set Set, progress func(int)) error {
	s, err := Open(ctx, path, Options{build: true})
	if err != nil {
		return err
	}
	err = s.Seed(ctx, set, progress)
	if err == nil {
		_, err = s.writer.ExecContext(ctx, `PRAGMA journal_mode = WAL`)
	}
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync() // written without a journal: let it reach the disk before it gets its name
}
