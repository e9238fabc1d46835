package simulated

import (
	"context"
	"errors"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi"
)

// counting returns a store of many, and how many drawers of cards were made in it.
func counting(t *testing.T) (s *Store, made *int) {
	t.Helper()
	s, err := New(100_000, 1)
	if err != nil {
		t.Fatal(err)
	}
	made = new(int)
	for i, make := range s.cards {
		s.cards[i] = func() []card { *made |= 1 << min(i, 62); return make() }
	}
	return s, made
}

// A search among 100,000 would make all of them each time.
func TestSearchMakesCardsOnlyAsFarAsItComes(t *testing.T) {
	s, made := counting(t)
	var page patientapi.Page
	for _, q := range []patientapi.PatientSearch{
		{}, {After: "P099000"}, {IDs: []string{"P000001", "P099999"}}, {Limit: 1},
	} {
		if err := s.Search(t.Context(), q, &page); err != nil || len(page.Patients) == 0 || *made != 0 {
			t.Fatalf("found %d, %v; made drawers %b, without a condition to look for", len(page.Patients), err, *made)
		}
	}
	if err := s.Search(t.Context(), patientapi.PatientSearch{Name: "a", Limit: 20}, &page); err != nil || !page.More || *made != 1 {
		t.Errorf("more %v, %v; drawers %b", page.More, err, *made)
	}
	if err := s.Search(t.Context(), patientapi.PatientSearch{IDs: []string{"P002000"}, Name: "a"}, &page); err != nil || *made != 0b11 {
		t.Errorf("%v; drawers %b", err, *made)
	}
}

func TestLongSearchEndsWithItsContext(t *testing.T) {
	s, made := counting(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	make := s.cards[2]
	s.cards[2] = func() []card { cancel(); return make() }
	var page patientapi.Page
	err := s.Search(ctx, patientapi.PatientSearch{Name: "nobody has this name"}, &page)
	if !errors.Is(err, context.Canceled) || len(page.Patients) > 0 || *made != 0b111 {
		t.Errorf("found %d, %v; drawers %b", len(page.Patients), err, *made)
	}
}

func BenchmarkSearch(b *testing.B) {
	s, err := New(100_000, 1)
	if err != nil {
		b.Fatal(err)
	}
	var page patientapi.Page
	for b.Loop() {
		if err := s.Search(b.Context(), patientapi.PatientSearch{Identifier: patientapi.Identifier{Value: "MRN-10099999"}}, &page); err != nil {
			b.Fatal(err)
		}
	}
}
