package patientapi

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"reflect"
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
