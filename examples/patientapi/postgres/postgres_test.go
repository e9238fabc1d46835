package postgres

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
	"github.com/spillway-go/spillway/examples/patientapi/internal/postgrestest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/internal/storetest"
)

var set = patientapi.Set{Patients: storetest.Patients, Seed: storetest.Seed}

func open(t testing.TB, cfg Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), cfg, set, nil)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, open(t, Config{URL: postgrestest.New(t, 0).URL}))
}

func TestManyProcessesMayStartAtOnce(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t, 0)
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for range 5 {
		wg.Go(func() {
			told := false
			s, err := Open(t.Context(), Config{URL: d.URL, Connections: 2}, set, func(int) { told = true })
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			mu.Lock()
			defer mu.Unlock()
			if told {
				made++
			}
			var p patientapi.Patient
			assert.NoError(t, s.Patient(t.Context(), "P000300", &p))
		})
	}
	wg.Wait()
	if made != 1 {
		t.Errorf("%d of five filled the database", made)
	}
}

func TestInterruptedFillingLeavesNobody(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := Open(ctx, Config{URL: d.URL}, patientapi.Set{Patients: 50_000, Seed: 1}, func(int) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	var told []int
	s, err := Open(t.Context(), Config{URL: d.URL}, set, func(done int) { told = append(told, done) })
	require.NoError(t, err)
	defer s.Close()
	if len(told) == 0 || told[len(told)-1] != set.Patients {
		t.Errorf("progress was told %v", told)
	}
	// The indexes and foreign keys are back.
	var indexes, keys int
	if err := s.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pg_index WHERE NOT indisunique AND indrelid = ANY ($1::regclass[])),
		(SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND convalidated)`, []string{"patients", "identifiers"}).Scan(&indexes, &keys); err != nil {
		t.Fatal(err)
	}
	if indexes != 5 || keys != 11 {
		t.Errorf("%d indexes and %d foreign keys; want 5 and 11", indexes, keys)
	}
}

func TestAnotherSetIsAnErrorAndLeftAlone(t *testing.T) {
	t.Parallel()
	d := postgrestest.New(t, 0)
	s := open(t, Config{URL: d.URL})
	for _, other := range []patientapi.Set{{Patients: set.Patients + 1, Seed: set.Seed}, {Patients: set.Patients, Seed: set.Seed + 1}} {
		_, err := Open(t.Context(), Config{URL: d.URL}, other, nil)
		if err == nil || !strings.Contains(err.Error(), "name another database") {
			t.Errorf("%+v: %v", other, err)
		}
	}
	if _, err := s.pool.Exec(t.Context(), "UPDATE patient_set SET generator = 0"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Config{URL: d.URL}, set, nil); err == nil || !strings.Contains(err.Error(), "generator version 0") {
		t.Error(err)
	}
	if _, err := Open(t.Context(), Config{URL: d.URL}, patientapi.Set{}, nil); err == nil {
		t.Error("a set of nobody was made")
	}
}
