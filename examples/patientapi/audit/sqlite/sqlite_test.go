package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"

	"github.com/spillway-go/spillway/examples/patientapi/audit"
	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
	"github.com/spillway-go/spillway/examples/patientapi/internal/audittest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/migrate"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/internal/await"
)

func open(t *testing.T, path string) *Storage {
	t.Helper()
	s, err := Open(t.Context(), path)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, s.Close())
	})
	return s
}

func TestStorage(t *testing.T) {
	audittest.Run(t, func(t *testing.T) audittest.Database {
		path := filepath.Join(t.TempDir(), "audit.db")
		return audittest.Database{
			Open: func(t *testing.T) audit.Storage { return open(t, path) },
			Exec: func(t *testing.T, query string) {
				db, err := connect(path)
				require.NoError(t, err)
				defer db.Close()
				if _, err := db.ExecContext(t.Context(), query); err != nil {
					t.Fatal(query, err)
				}
			},
			Blob: func(hexadecimal string) string { return "x'" + hexadecimal + "'" },
		}
	})
}

// Records of before keep their numbers and hashes.
func TestTheRecordsOfBeforeAreTakenOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	db, err := connect(path)
	require.NoError(t, err)
	defer db.Close()
	provider, err := migrate.New(goose.DialectSQLite3, db, migrations, goose.WithTableName(schemaTable))
	require.NoError(t, err)
	if _, err := provider.UpTo(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	records, head := audittest.Before(t)
	for _, r := range records {
		e := r.Event
		if _, err := db.ExecContext(t.Context(), "INSERT INTO audit_records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", r.Sequence, e.Time.UnixMicro(), e.RequestID, e.Subject,
			e.Role, e.Action, e.Resource, strings.Join(e.Patients, ","), e.More, string(e.Outcome), e.Status, e.Route, e.Unread, e.Count, r.Hash[:]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.ExecContext(t.Context(), "INSERT INTO audit_head VALUES (1, ?, ?, ?)", head.Sequence, head.Hash[:], head.Seal[:]); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	if got := audittest.Read(t, s); !reflect.DeepEqual(got, records) {
		t.Errorf("%+v", got)
	}
	audittest.Record(t, s, nil, audittest.Everything)
	if r := audittest.Whole(t, s, nil); r.Records != int64(len(records))+1 {
		t.Errorf("%+v", r)
	}
}

func TestOtherUsersCannotReadTheRecords(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the mode says nothing there")
	}
	dir := filepath.Join(t.TempDir(), "new")
	path := filepath.Join(dir, "audit.db")
	audittest.Record(t, open(t, path), nil, audittest.Everything)
	require.NoError(t, os.Chmod(path, 0o644))
	audittest.Record(t, open(t, path), nil, audittest.Everything)
	for name, want := range map[string]fs.FileMode{dir: 0o700, path: 0o600, path + "-wal": 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%v, %v", info, err)
		}
	}
}

func TestVerifyingMakesNothing(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenExisting(t.Context(), filepath.Join(dir, "none.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	other := filepath.Join(dir, "other.txt")
	require.NoError(t, os.WriteFile(other, []byte("not a database"), 0o600))
	if _, err := OpenExisting(t.Context(), other); err == nil {
		t.Error("a text file holds audit records")
	}
	path := filepath.Join(dir, "audit.db")
	writing, err := Open(t.Context(), path)
	require.NoError(t, err)
	audittest.Record(t, writing, nil, audittest.Everything)
	for _, what := range []string{"beside a service", "after it"} {
		s, err := OpenExisting(t.Context(), path)
		if err != nil {
			t.Fatal(what, err)
		}
		audittest.Whole(t, s, nil)
		if err := s.Close(); err != nil {
			t.Error(what, err)
		}
		assert.NoError(t, writing.Close())
	}
}

// A commit that waits for another process ends with its context, and does not hold up
// all answers for as long as SQLite would wait.
func TestWaitingForTheLockEndsWithTheContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	s := open(t, path)
	other, err := connect(path, "_txlock=immediate")
	require.NoError(t, err)
	defer other.Close()
	tx, err := other.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	var alone int // how long SQLite waits, in milliseconds, heedless of a context
	if err := s.writer.QueryRowContext(t.Context(), "PRAGMA busy_timeout").Scan(&alone); err != nil || alone > 100 {
		t.Errorf("%d ms, %v", alone, err)
	}
	ctx, pass := await.Deadline(t.Context())
	ended := make(chan error, 1)
	nothing := func(t audit.Tip) (audit.Block, audit.Head, error) { return audit.Block{}, t.Head, nil }
	go func() { ended <- s.Append(ctx, nothing) }()
	await.True(t, "it asks for the lock", func() bool { return s.writer.Stats().InUse == 1 })
	pass()
	if err := await.Receive(t, "it gives up", ended); err == nil {
		t.Error("it has the lock that another one has")
	}
	require.NoError(t, tx.Rollback())
	audittest.Record(t, s, nil, audittest.Everything)
}

// SQLite goes on writing to a file that nobody can open any more: what it says then would
// be on record for as long as the process lives.
func TestAFileThatIsGoneTakesNoRecords(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files in use stay there")
	}
	path := filepath.Join(t.TempDir(), "audit.db")
	s := open(t, path)
	audittest.Record(t, s, nil, audittest.Everything)
	require.NoError(t, os.Rename(path, path+".aside"))
	nothing := func(t audit.Tip) (audit.Block, audit.Head, error) { return audit.Block{}, t.Head, nil }
	if err := s.Append(t.Context(), nothing); err == nil {
		t.Error("recorded in a file that was removed")
	}
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	if err := s.Append(t.Context(), nothing); err == nil {
		t.Error("recorded in a file that was replaced")
	}
	require.NoError(t, os.Rename(path+".aside", path))
	audittest.Record(t, s, nil, audittest.Everything)
}

// Whoever may do so would take a device from all other users otherwise.
func TestADeviceKeepsItsMode(t *testing.T) {
	before, err := os.Stat(os.DevNull)
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("there is no such file")
	}
	f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	if _, err := private(f); err == nil {
		t.Error("a device is taken for a file")
	}
	if after, err := os.Stat(os.DevNull); err != nil || after.Mode() != before.Mode() {
		t.Fatalf("%v, %v", after.Mode(), err)
	}
}
