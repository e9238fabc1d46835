package patientapi

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"testing"
)

func generated(seed uint64, n int) (p Patient) {
	Generator{seed}.Patient(n, &p)
	return p
}

func TestSameSeedSamePerson(t *testing.T) {
	var reused Patient
	for n := 1; n <= 200; n++ {
		Generator{1}.Patient(n, &reused)
		if fresh := generated(1, n); text(fresh) != text(reused) {
			t.Fatalf("patient %d depends on what its memory held before:\n%s\n%s", n, text(fresh), text(reused))
		}
	}
	if a, b := generated(1, 1), generated(2, 1); a.Name == b.Name && a.Phone == b.Phone {
		t.Error("the seed changes nothing")
	}
}

// The digests pin every field by itself: a change to one that moves another, or
// a platform that draws differently, shows here. Whoever changes one on purpose
// raises GeneratorVersion.
func TestEveryFieldIsPinned(t *testing.T) {
	want := map[string]string{
		"ID":          "2e2ab4d0941de03c",
		"Identifiers": "289b4ff6e89f2ba4",
		"Name":        "72d70a161a211023",
		"BirthDate":   "885839c413c89af9",
		"Gender":      "e0d310a058ff532f",
		"BloodType":   "6230bd0070fbab7b",
		"Phone":       "7454d6203ee143fb",
		"Address":     "54f941ef3383a82e",
		"Physician":   "e6e6f8a3c2e5efab",
		"Insurance":   "5370dc7fa0efae43",
		"Diagnoses":   "b2f24c1dd4b55198",
		"Medications": "f94557ed73ad7a37",
		"Allergies":   "1579278b089c00ca",
		"Visits":      "4660974de819afb9",
		"Version":     "31c9e9825c7c8dfa",
		"Updated":     "32941486bdd95eb3",
	}
	got := map[string]string{}
	for i := range reflect.TypeFor[Patient]().NumField() {
		h := fnv.New64a()
		for n := 1; n <= 1000; n++ {
			field := reflect.ValueOf(generated(1, n)).Field(i)
			fmt.Fprintln(h, text(field.Interface()))
		}
		got[reflect.TypeFor[Patient]().Field(i).Name] = fmt.Sprintf("%016x", h.Sum64())
	}
	for name, digest := range got {
		if want[name] != digest {
			t.Errorf("%s has digest %s, want %s", name, digest, want[name])
		}
	}
}

// text is a value's JSON form; a Patient hides itself from fmt.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestNewFieldMovesNoOther(t *testing.T) {
	before := make([]string, 100)
	for n := range before {
		before[n] = text(generated(1, n+1))
	}
	original := patientFields
	t.Cleanup(func() { patientFields = original })

	greedy := original[0]
	greedy.name = "shoe_size"
	greedy.draw = func(_ Generator, s *stream, _ int, _ *Patient) {
		for range 100 {
			s.next()
		}
	}
	for at := range len(original) + 1 {
		patientFields = slices.Insert(slices.Clone(original), at, greedy)
		for n := range before {
			if after := text(generated(1, n+1)); after != before[n] {
				t.Fatalf("a field added at %d changed patient %d:\n%s\n%s", at, n+1, before[n], after)
			}
		}
	}
}

func TestPeopleDiffer(t *testing.T) {
	const n = 5000
	names, phones, female, allergic := map[Name]int{}, map[string]int{}, 0, 0
	for i := 1; i <= n; i++ {
		p := generated(1, i)
		names[p.Name]++
		phones[p.Phone]++
		if p.Gender == "female" {
			female++
		}
		if len(p.Allergies) > 0 {
			allergic++
		}
	}
	if len(names) < n*9/10 || len(phones) < n*99/100 {
		t.Errorf("%d names and %d phones among %d people", len(names), len(phones), n)
	}
	if share := float64(female) / n; share < 0.46 || share > 0.53 {
		t.Errorf("%.2f are female, want 0.495", share)
	}
	if share := float64(allergic) / n; share < 0.23 || share > 0.31 { // 0.4 have the chance, a third of them none
		t.Errorf("%.2f have an allergy, want 0.267", share)
	}
}

func TestListsRepeatNothing(t *testing.T) {
	for i := 1; i <= 2000; i++ {
		p := generated(3, i)
		seen := map[string]bool{}
		for _, d := range p.Diagnoses {
			if seen[d.Code] {
				t.Fatalf("patient %d has %s twice", i, d.Code)
			}
			seen[d.Code] = true
		}
	}
}

func TestCliniciansHaveOneAddressEach(t *testing.T) {
	emails := map[string]bool{}
	for n := 1; n <= Clinicians; n++ {
		c := Generator{1}.Clinician(n)
		if emails[c.Email] {
			t.Fatalf("%s belongs to two clinicians", c.Email)
		}
		emails[c.Email] = true
	}
}

func BenchmarkGenerator(b *testing.B) {
	var p Patient
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n = n%MaxPatients + 1
		Generator{1}.Patient(n, &p)
	}
}
