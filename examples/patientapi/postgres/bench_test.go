package postgres

import (
	"strconv"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/postgrestest"
)

func BenchmarkSeed(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		d := postgrestest.New(b, 0)
		b.StartTimer()
		s, err := Open(b.Context(), Config{URL: d.URL}, patientapi.Set{Patients: 100_000, Seed: 1}, nil)
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}

func BenchmarkLookup(b *testing.B) {
	s, err := Open(b.Context(), Config{URL: postgrestest.New(b, 0).URL}, patientapi.Set{Patients: 10_000, Seed: 1}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.Run("patient", func(b *testing.B) {
		var p patientapi.Patient
		n := 0
		b.ReportAllocs()
		for b.Loop() {
			n = (n + 7919) % 10_000
			if err := s.Patient(b.Context(), patientapi.FormatID(n+1), &p); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, size := range []int{10, 100} {
		b.Run("search, a page of "+strconv.Itoa(size), func(b *testing.B) {
			var page patientapi.Page
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Search(b.Context(), patientapi.PatientSearch{Name: "Be", Limit: size}, &page); err != nil || len(page.Patients) == 0 {
					b.Fatal(err)
				}
			}
		})
	}
}
