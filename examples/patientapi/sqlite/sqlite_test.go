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
	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/internal/storetest"
)

var set = Set{Patients: storetest.Patients, Seed: storetest.Seed}

func openSet(t *testing.T, path string, opts Options) *Store {
	t.Helper()
	s, err := OpenSet(t.Context(), path, set, opts, nil)
	require.NoError(t, err)
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
		assert.NoError(t, err)
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
	require.NoError(t, err)
	defer other.Close()
	check()
}

func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestAnotherSetIsAnErrorAndLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "patients.db")
	s := openSet(t, path, Options{})
	for _, other := range []Set{{Patients: set.Patients + 1, Seed: set.Seed}, {Patients: set.Patients, Seed: set.Seed + 1}} {
		_, err := OpenSet(t.Context(), path, other, Options{}, nil)
		if err == nil || !strings.Contains(err.Error(), "name another file") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v", other, err)
		}
	}
	if _, err := s.writer.Exec("UPDATE patient_set SET generator = 1"); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenSet(t.Context(), path, set, Options{}, nil); err == nil || !strings.Contains(err.Error(), "generator version 1") {
		t.Error(err)
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
			assert.NoError(t, s.Patient(t.Context(), "P000300", &p))
		})
	}
	wg.Wait()
	for _, name := range files(t, filepath.Dir(path)) {
		if strings.HasPrefix(name, ".building") {
			t.Errorf("left behind: %s", name)
		}
	}
}
