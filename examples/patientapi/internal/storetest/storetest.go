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
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

// Patients and Seed name the set that the store under test must hold.
const (
	Patients = 300
	Seed     = 11
)

// Run examines the store.
func Run(t *testing.T, store patientapi.Store) {
	t.Run("every patient is the one generated", func(t *testing.T) { everybody(t, store) })
	t.Run("reused memory shows nothing of its past", func(t *testing.T) { reuse(t, store) })
	t.Run("errors", func(t *testing.T) { failures(t, store) })
	t.Run("batches keep order, doubles and gaps", func(t *testing.T) { batches(t, store) })
	t.Run("an ended context ends the lookup", func(t *testing.T) { ended(t, store) })
	t.Run("clinicians are found by each address they are reached at", func(t *testing.T) { clinicians(t, store) })
	t.Run("observations are those generated", func(t *testing.T) { observations(t, store) })
	t.Run("many at once", func(t *testing.T) { concurrent(t, store) })
	t.Run("searches", func(t *testing.T) { searches(t, store) })
	if err := store.Ping(t.Context()); err != nil {
		t.Error("ping:", err)
	}
}

// malformed could be the ids of nobody.
var malformed = []string{"", "P1", "x000001", "' OR 1=", "P00000١", "P000001\x00", "P0000001"}

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

func everybody(t *testing.T, store patientapi.Store) {
	for n := 1; n <= Patients; n++ {
		var p patientapi.Patient
		require.NoError(t, store.Patient(t.Context(), patientapi.FormatID(n), &p))
		if got := text(&p); got != want(n) {
			t.Fatalf("patient %d\n got %s\nwant %s", n, got, want(n))
		}
	}
}

func reuse(t *testing.T, store patientapi.Store) {
	var p patientapi.Patient
	for n := Patients; n >= 1; n-- {
		require.NoError(t, store.Patient(t.Context(), patientapi.FormatID(n), &p))
		if got := text(&p); got != want(n) {
			t.Fatalf("patient %d in reused memory\n got %s\nwant %s", n, got, want(n))
		}
	}
}

func failures(t *testing.T, store patientapi.Store) {
	cases := map[string]error{
		"P000000": patientapi.ErrNotFound,
		"P000301": patientapi.ErrNotFound,
		"P999999": patientapi.ErrNotFound,
	}
	for _, id := range malformed {
		cases[id] = patientapi.ErrMalformedID
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

func batches(t *testing.T, store patientapi.Store) {
	var b patientapi.Batch
	for _, ids := range [][]string{
		{"P000003", "P000001", "P000002"},
		{"P000300", "P000301", "P000001", "P999999"},
		{"P000301", "P000000"},
		{"P000007", "P000007", "P000301", "P000301", "P000007"},
		{"P000301", "P000009"},
		{},
	} {
		require.NoError(t, store.Patients(t.Context(), ids, &b))
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

func ended(t *testing.T, store patientapi.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var p patientapi.Patient
	if err := store.Patient(ctx, "P000001", &p); !errors.Is(err, context.Canceled) {
		t.Errorf("one: %v", err)
	}
	c := patientapi.Generator{Seed: Seed}.Clinician(1)
	if _, err := store.Clinicians(ctx, query(c.Email, c.Organisation)); !errors.Is(err, context.Canceled) {
		t.Errorf("clinicians: %v", err)
	}
	var b patientapi.Batch
	if err := store.Patients(ctx, []string{"P000001"}, &b); !errors.Is(err, context.Canceled) {
		t.Errorf("many: %v", err)
	}
	page := patientapi.Page{Patients: make([]patientapi.Patient, 2), More: true}
	if err := store.Search(ctx, patientapi.PatientSearch{}, &page); !errors.Is(err, context.Canceled) || len(page.Patients) > 0 || page.More {
		t.Errorf("search: %v, %v", page, err)
	}
	if _, err := store.Observations(ctx, "P000001"); !errors.Is(err, context.Canceled) {
		t.Errorf("observations: %v", err)
	}
}

// query returns the question, which must be one.
func query(email, organisation string) patientapi.ClinicianQuery {
	q, err := patientapi.NewClinicianQuery(email, organisation)
	if err != nil {
		panic(err)
	}
	return q
}

func clinicians(t *testing.T, store patientapi.Store) {
	reached := map[patientapi.ClinicianQuery][]patientapi.Clinician{}
	for n := 1; n <= patientapi.Clinicians; n++ {
		c := patientapi.Generator{Seed: Seed}.Clinician(n)
		for _, email := range c.Mailboxes() {
			q := query(email, c.Organisation)
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
		query("nobody@org01.example", first.Organisation), query(first.Email, "another organisation"), query(first.Email, "%"),
		{},
	} {
		if got, err := store.Clinicians(t.Context(), q); err != nil || len(got) > 0 {
			t.Errorf("found %d, %v; want nobody", len(got), err)
		}
	}
}

func observations(t *testing.T, store patientapi.Store) {
	some := 0
	for n := 0; n <= Patients+1; n++ {
		var want []patientapi.Observation
		if n >= 1 && n <= Patients {
			want = patientapi.Generator{Seed: Seed}.Observations(n)
		}
		for range 2 {
			got, err := store.Observations(t.Context(), patientapi.FormatID(n))
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("patient %d: %v\n got %s\nwant %s", n, err, text(got), text(want))
			}
			clear(got) // it is ours
		}
		some += len(want)
	}
	if some < Patients {
		t.Errorf("%d observations are too few to tell", some)
	}
	for _, id := range malformed {
		if got, err := store.Observations(t.Context(), id); !errors.Is(err, patientapi.ErrMalformedID) || len(got) > 0 {
			t.Errorf("%q: %d observations, %v", id, len(got), err)
		}
	}
}

func concurrent(t *testing.T, store patientapi.Store) {
	var wg sync.WaitGroup
	for worker := range 16 {
		wg.Go(func() {
			var p patientapi.Patient
			var page patientapi.Page
			for i := range 40 {
				n := 1 + (worker*37+i*11)%Patients
				id := patientapi.FormatID(n)
				if err := store.Patient(t.Context(), id, &p); err != nil {
					t.Error(err)
				} else if text(&p) != want(n) {
					t.Errorf("asked for patient %d, got another", n)
				}
				if i%8 > 0 {
					continue
				}
				if err := store.Search(t.Context(), patientapi.PatientSearch{Identifier: p.Identifiers[0]}, &page); err != nil {
					t.Error(err)
				} else if text(page.Patients) != "["+want(n)+"]" || page.More {
					t.Errorf("searched for patient %d, found others", n)
				}
				if all, err := store.Observations(t.Context(), id); err != nil || len(all) > 0 && all[0].Patient != id {
					t.Errorf("observations of patient %d: %v, or of another", n, err)
				}
			}
		})
	}
	wg.Wait()
}
