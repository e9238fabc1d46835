package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/storetest"
)

var set = Set{Patients: storetest.Patients, Seed: storetest.Seed}

func openSet(t *testing.T, path string, opts Options) *Store {
	t.Helper()
	s, err := OpenSet(t.Context(), path, set, opts, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// The suite compares with the generator, as that of the simulated store does:
// the two stores answer alike.
func TestStore(t *testing.T) {
	storetest.Run(t, openSet(t, filepath.Join(t.TempDir(), "patients.db"), Options{}))
}

// Every user of the machine could read everybody's diagnoses.
func TestFilesAndFoldersAreForThisUserAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no such modes on Windows")
	}
	dir := filepath.Join(t.TempDir(), "data")
	path := filepath.Join(dir, "patients.db")
	check := func() {
		t.Helper()
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has the mode %v", name, info.Mode())
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	s := openSet(t, path, Options{})
	if _, err := s.writer.Exec("CREATE TABLE scratch (a)"); err != nil { // makes the files beside
		t.Fatal(err)
	}
	if _, err := os.Stat(path + "-wal"); err != nil {
		t.Error(err)
	}
	check()
	if err := os.Chmod(path, 0o644); err != nil { // as they were made once
		t.Fatal(err)
	}
	openSet(t, path, Options{})
	check()

	other, err := Open(t.Context(), filepath.Join(dir, "other.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	check()
}

func TestOneReaderIsEnough(t *testing.T) {
	s := openSet(t, filepath.Join(t.TempDir(), "patients.db"), Options{Readers: 1})
	storetest.Lookups(t, s)
	if c := s.Connections(); c.Max != 1 || c.Open != 1 || c.Peak != 1 {
		t.Errorf("connections %+v", c)
	}
}

func TestOddPathsAreJustPaths(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?mode=memory&x=%41#c", "patients.db")
	openSet(t, path, Options{})
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestSeedingInAnOpenStoreIsTheSame(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "patients.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var p patientapi.Patient
	if err := s.Patient(t.Context(), "P000001", &p); !errors.Is(err, patientapi.ErrNotFound) {
		t.Errorf("an empty store: %v", err)
	}
	var calls []int
	if err := s.Seed(t.Context(), set, func(done int) { calls = append(calls, done) }); err != nil {
		t.Fatal(err)
	}
	if len(calls) == 0 || calls[len(calls)-1] != set.Patients {
		t.Errorf("progress was told %v", calls)
	}
	storetest.Lookups(t, s)
	if err := s.Seed(t.Context(), set, nil); err == nil {
		t.Error("seeded twice")
	}
	rows, err := s.writer.Query("PRAGMA foreign_key_check")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if rows.Next() {
		t.Error("a row refers to nobody")
	}
}

func TestServingUsesWAL(t *testing.T) {
	s := openSet(t, filepath.Join(t.TempDir(), "patients.db"), Options{})
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "1", "foreign_keys": "1", "busy_timeout": "10000"} {
		var got string
		if err := s.writer.QueryRow("PRAGMA " + pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", pragma, got, err, want)
		}
	}
	if _, err := s.readers.Exec("DELETE FROM visits"); err == nil {
		t.Error("a reader wrote")
	}
}

func TestReopeningWritesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "patients.db")
	first, err := OpenSet(t.Context(), path, set, Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenSet(t.Context(), path, set, Options{}, func(int) { t.Error("a finished file is made again") })
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Error("reopening changed the file", err)
	}
	if names := files(t, filepath.Dir(path)); len(names) != 1 {
		t.Errorf("left beside the file: %v", names)
	}
}

func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestAnotherSetIsAnErrorAndLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "patients.db")
	openSet(t, path, Options{})
	for _, other := range []Set{{Patients: set.Patients + 1, Seed: set.Seed}, {Patients: set.Patients, Seed: set.Seed + 1}} {
		_, err := OpenSet(t.Context(), path, other, Options{}, nil)
		if err == nil || !strings.Contains(err.Error(), "name another file") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v", other, err)
		}
	}
}

func TestOldGeneratorIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "patients.db")
	s := openSet(t, path, Options{})
	if _, err := s.writer.Exec("UPDATE patient_set SET generator = 0"); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenSet(t.Context(), path, set, Options{}, nil); err == nil || !strings.Contains(err.Error(), "generator version 0") {
		t.Error(err)
	}
}

func TestUnusableFilesSaySo(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("not a database\n", 100)), 0o644); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty.db")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	unseeded := filepath.Join(dir, "unseeded.db")
	s, err := Open(t.Context(), unseeded, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	for path, want := range map[string]string{
		unseeded:                        "holds no patients",
		text:                            "not a database",
		empty:                           "not a patient database",
		filepath.Join(text, "below.db"): "not a directory",
	} {
		_, err := OpenSet(t.Context(), path, set, Options{}, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if b, err := os.ReadFile(empty); err != nil || len(b) != 0 {
		t.Error("somebody else's file was written to", err)
	}
	if _, err := OpenSet(t.Context(), filepath.Join(dir, "x.db"), Set{Patients: 0, Seed: 1}, Options{}, nil); err == nil {
		t.Error("a set of nobody was made")
	}
	if _, err := Open(t.Context(), filepath.Join(dir, "x.db"), Options{Readers: -1}); err == nil {
		t.Error("a negative number of readers was accepted")
	}
}

func TestInterruptedMakingLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := OpenSet(ctx, filepath.Join(dir, "patients.db"), Set{Patients: 5000, Seed: 1}, Options{}, func(done int) {
		if done > 1000 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if names := files(t, dir); len(names) != 0 {
		t.Errorf("left behind: %v", names)
	}
}

func TestMakingOneFileTwiceAtOnceDoesNoHarm(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "patients.db")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s, err := OpenSet(t.Context(), path, set, Options{}, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			var p patientapi.Patient
			if err := s.Patient(t.Context(), "P000300", &p); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, name := range files(t, filepath.Dir(path)) {
		if strings.HasPrefix(name, ".building") {
			t.Errorf("left behind: %s", name)
		}
	}
}

func TestDefaultPathNamesTheSet(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	path, err := DefaultPath(Set{Patients: 5, Seed: 6})
	if err != nil || filepath.Base(path) != "patients-v2-5-6.db" || filepath.Base(filepath.Dir(path)) != "spillway" {
		t.Errorf("%s, %v", path, err)
	}
}

func BenchmarkLookup(b *testing.B) {
	s, err := OpenSet(b.Context(), filepath.Join(b.TempDir(), "patients.db"), Set{Patients: 10_000, Seed: 1}, Options{}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var p patientapi.Patient
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n = (n + 7919) % 10_000
		if err := s.Patient(b.Context(), patientapi.FormatID(n+1), &p); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSeed(b *testing.B) {
	for b.Loop() {
		path := filepath.Join(b.TempDir(), "patients.db")
		s, err := OpenSet(b.Context(), path, Set{Patients: 10_000, Seed: 1}, Options{}, nil)
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
		os.Remove(path)
	}
}
