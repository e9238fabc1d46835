// Package storetest is the exam that every patient store takes.
package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi"
)

// Patients and Seed name the set that the store under test must hold.
const (
	Patients = 300
	Seed     = 11
)

// Store is what every patient store can do.
type Store interface {
	Patient(ctx context.Context, id string, dst *patientapi.Patient) error
	Patients(ctx context.Context, ids []string, dst *patientapi.Batch) error
	Clinicians(ctx context.Context, q patientapi.ClinicianQuery) ([]patientapi.Clinician, error)
	Ping(ctx context.Context) error
}

// Run examines the store.
func Run(t *testing.T, store Store) {
	t.Run("every patient is the one generated", func(t *testing.T) { everybody(t, store) })
	t.Run("reused memory shows nothing of its past", func(t *testing.T) { reuse(t, store) })
	t.Run("errors", func(t *testing.T) { failures(t, store) })
	t.Run("batches keep order, doubles and gaps", func(t *testing.T) { batches(t, store) })
	t.Run("an ended context ends the lookup", func(t *testing.T) { ended(t, store) })
	t.Run("clinicians are found by each address they are reached at", func(t *testing.T) { Clinicians(t, store) })
	t.Run("many at once", func(t *testing.T) { concurrent(t, store) })
	if err := store.Ping(t.Context()); err != nil {
		t.Error("ping:", err)
	}
}

// want returns the JSON form of patient n.
func want(n int) string {
	var p patientapi.Patient
	patientapi.Generator{Seed: Seed}.Patient(n, &p)
	return text(&p)
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func everybody(t *testing.T, store Store) {
	for n := 1; n <= Patients; n++ {
		var p patientapi.Patient
		if err := store.Patient(t.Context(), patientapi.FormatID(n), &p); err != nil {
			t.Fatal(err)
		}
		if got := text(&p); got != want(n) {
			t.Fatalf("patient %d\n got %s\nwant %s", n, got, want(n))
		}
	}
}

func reuse(t *testing.T, store Store) {
	var p patientapi.Patient
	for n := Patients; n >= 1; n-- {
		if err := store.Patient(t.Context(), patientapi.FormatID(n), &p); err != nil {
			t.Fatal(err)
		}
		if got := text(&p); got != want(n) {
			t.Fatalf("patient %d in reused memory\n got %s\nwant %s", n, got, want(n))
		}
	}
}

func failures(t *testing.T, store Store) {
	cases := map[string]error{
		"P000000": patientapi.ErrNotFound,
		"P000301": patientapi.ErrNotFound,
		"P999999": patientapi.ErrNotFound,
		"":        patientapi.ErrMalformedID,
		"P1":      patientapi.ErrMalformedID,
		"x000001": patientapi.ErrMalformedID,
		"' OR 1=": patientapi.ErrMalformedID,
	}
	for id, want := range cases {
		p := patientapi.Patient{ID: "somebody else", Visits: make([]patientapi.Visit, 3)}
		if err := store.Patient(t.Context(), id, &p); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", id, err, want)
		}
		if p.ID != "" || len(p.Visits) != 0 {
			t.Errorf("%q: the answer still shows somebody else", id)
		}
	}
	b := patientapi.Batch{Patients: make([]patientapi.Patient, 2)}
	if err := store.Patients(t.Context(), []string{"P000001", "P2"}, &b); !errors.Is(err, patientapi.ErrMalformedID) {
		t.Errorf("a batch with a malformed id: %v", err)
	}
	if len(b.Patients) != 0 {
		t.Error("a failed batch still shows somebody")
	}
}

func batches(t *testing.T, store Store) {
	var b patientapi.Batch
	for _, ids := range [][]string{
		{"P000003", "P000001", "P000002"},
		{"P000300", "P000301", "P000001", "P999999"},
		{"P000301", "P000000"},
		{"P000007", "P000007", "P000301", "P000301", "P000007"},
		{"P000301", "P000009"},
		{},
	} {
		if err := store.Patients(t.Context(), ids, &b); err != nil {
			t.Fatal(err)
		}
		var found, missing []string
		for _, id := range ids {
			if n, _ := patientapi.ParseID(id); n >= 1 && n <= Patients {
				found = append(found, want(n))
			} else {
				missing = append(missing, id)
			}
		}
		if got, want := text(b.Patients), "["+strings.Join(found, ",")+"]"; got != want {
			t.Errorf("%v: found\n %s\nwant\n %s", ids, got, want)
		}
		if !slices.Equal(b.Missing, missing) {
			t.Errorf("%v: missing %v, want %v", ids, b.Missing, missing)
		}
	}
}

func ended(t *testing.T, store Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var p patientapi.Patient
	if err := store.Patient(ctx, "P000001", &p); !errors.Is(err, context.Canceled) {
		t.Errorf("one: %v", err)
	}
	c := patientapi.Generator{Seed: Seed}.Clinician(1)
	if _, err := store.Clinicians(ctx, Query(c.Email, c.Organisation)); !errors.Is(err, context.Canceled) {
		t.Errorf("clinicians: %v", err)
	}
	var b patientapi.Batch
	if err := store.Patients(ctx, []string{"P000001"}, &b); !errors.Is(err, context.Canceled) {
		t.Errorf("many: %v", err)
	}
}

// Query returns the question, which must be one.
func Query(email, organisation string) patientapi.ClinicianQuery {
	q, err := patientapi.NewClinicianQuery(email, organisation)
	if err != nil {
		panic(err)
	}
	return q
}

// Clinicians is the part of the exam about clinicians.
func Clinicians(t *testing.T, store Store) {
	reached := map[patientapi.ClinicianQuery][]patientapi.Clinician{}
	for n := 1; n <= patientapi.Clinicians; n++ {
		c := patientapi.Generator{Seed: Seed}.Clinician(n)
		for _, email := range c.Mailboxes() {
			q := Query(email, c.Organisation)
			reached[q] = append(reached[q], c)
		}
	}
	shared := 0
	for q, want := range reached {
		got, err := store.Clinicians(t.Context(), q)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%#v: got %s, %v; want %s", q, text(got), err, text(want))
		}
		if len(got) > 1 {
			shared++
		}
		clear(got) // it is ours
		if got, _ = store.Clinicians(t.Context(), q); !slices.Equal(got, want) {
			t.Fatal("the store gave its own memory away")
		}
	}
	if shared == 0 {
		t.Error("no address is shared: lists of many were not tested")
	}
	first := patientapi.Generator{Seed: Seed}.Clinician(1)
	for _, q := range []patientapi.ClinicianQuery{
		Query("nobody@org01.example", first.Organisation), Query(first.Email, "another organisation"), Query(first.Email, "%"),
		{},
	} {
		if got, err := store.Clinicians(t.Context(), q); err != nil || len(got) > 0 {
			t.Errorf("found %d, %v; want nobody", len(got), err)
		}
	}
}

func concurrent(t *testing.T, store Store) {
	var wg sync.WaitGroup
	for worker := range 16 {
		wg.Go(func() {
			var p patientapi.Patient
			for i := range 40 {
				n := 1 + (worker*37+i*11)%Patients
				if err := store.Patient(t.Context(), patientapi.FormatID(n), &p); err != nil {
					t.Error(err)
				} else if text(&p) != want(n) {
					t.Errorf("asked for patient %d, got another", n)
				}
			}
		})
	}
	wg.Wait()
}
