// Package cachetest is the exam that every cache of clinicians takes.
package cachetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
)

// Query returns a question that only its number tells from others.
func Query(n int) patientapi.ClinicianQuery {
	c := clinician(n)
	return patientapi.ClinicianQuery{Email: c.Email, Organisation: c.Organisation}
}

func clinician(n int) patientapi.Clinician { return patientapi.Generator{Seed: 5}.Clinician(n) }

// Found returns a list of clinicians.
func Found(numbers ...int) (found []patientapi.Clinician) {
	for _, n := range numbers {
		found = append(found, clinician(n))
	}
	return found
}

// Cache is what every cache of clinicians can do.
type Cache interface {
	Clinicians(ctx context.Context, q patientapi.ClinicianQuery) ([]patientapi.Clinician, error)
	Keep(ctx context.Context, q patientapi.ClinicianQuery, found []patientapi.Clinician) error
}

// Run examines an empty cache.
func Run(t *testing.T, cache Cache) {
	ctx := t.Context()
	expect := func(q patientapi.ClinicianQuery, want []patientapi.Clinician) {
		t.Helper()
		if got, err := cache.Clinicians(ctx, q); err != nil || !slices.Equal(got, want) {
			t.Errorf("got %v, %v; want %v", got, err, want)
		}
	}
	keep := func(q patientapi.ClinicianQuery, found []patientapi.Clinician) {
		t.Helper()
		assert.NoError(t, cache.Keep(ctx, q, found))
	}
	expect(Query(1), nil)
	given := Found(1, 2, 3)
	keep(Query(1), given)
	expect(Query(1), Found(1, 2, 3))
	clear(given)
	expect(Query(1), Found(1, 2, 3)) // it holds nothing of what it was given
	got, _ := cache.Clinicians(ctx, Query(1))
	clear(got)
	expect(Query(1), Found(1, 2, 3)) // nor gives its own away
	keep(Query(1), Found(2))
	expect(Query(1), Found(2))
	keep(Query(1), nil)
	expect(Query(1), nil)

	// Questions that look alike when written one after the other.
	alike := []patientapi.ClinicianQuery{{Email: "a@b", Organisation: "cd"}, {Email: "a@bc", Organisation: "d"}, {Email: "a@b", Organisation: "c d"}}
	for i, q := range alike {
		keep(q, Found(i+1))
	}
	for i, q := range alike {
		expect(q, Found(i+1))
	}

	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := cache.Clinicians(ended, Query(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("asked under an ended context: %v", err)
	}
	if err := cache.Keep(ended, Query(9), Found(9)); !errors.Is(err, context.Canceled) {
		t.Errorf("told under an ended context: %v", err)
	}
	expect(Query(9), nil)

	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 50 {
				n := 10 + (worker+i)%5
				keep(Query(n), Found(n, n+1))
				expect(Query(n), Found(n, n+1))
			}
		})
	}
	wg.Wait()
}
