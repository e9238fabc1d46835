package patientapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

func TestIDs(t *testing.T) {
	for id, want := range map[string]int{"P000001": 1, "P100000": 100_000, "P999999": MaxPatients, "P000000": 0} {
		if n, err := ParseID(id); err != nil || n != want {
			t.Errorf("ParseID(%q) = %d, %v; want %d", id, n, err, want)
		}
	}
	for _, id := range []string{"", "P", "P1", "P00001", "P0000001", "p000001", "C000001", "P00000a", "P-00001", "P+00001", " P00001", "P００００", "P000001\n"} {
		if _, err := ParseID(id); err != ErrMalformedID {
			t.Errorf("ParseID(%q): %v; want ErrMalformedID", id, err)
		}
	}
}

func FuzzParseID(f *testing.F) {
	f.Add("P000042")
	f.Add("P00004")
	f.Add("")
	f.Fuzz(func(t *testing.T, id string) {
		n, err := ParseID(id)
		if err == nil && FormatID(n) != id {
			t.Fatalf("ParseID(%q) = %d, which is written %q", id, n, FormatID(n))
		}
	})
}

func TestClearLeavesNothingOfThePatient(t *testing.T) {
	p := full()
	p.Clear()
	if !isEmpty(reflect.ValueOf(p), t) {
		t.Fatal("the cleared patient still holds something")
	}
	if cap(p.Identifiers) == 0 || cap(p.Visits) == 0 {
		t.Error("clearing gave the memory away")
	}
}

func TestClearedBatchHandsOutEmptyPatients(t *testing.T) {
	var b Batch
	for range 3 {
		*b.Next() = full()
	}
	b.Missing = append(b.Missing, "P999999")
	b.Clear()
	if got, _ := json.Marshal(b); string(got) != `{"patients":[],"missing":[]}` {
		t.Errorf("cleared batch is %s", got)
	}
	for range 3 {
		if p := b.Next(); !isEmpty(reflect.ValueOf(*p), t) || cap(p.Visits) == 0 {
			t.Fatal("a reused patient is not empty, or lost its memory")
		}
	}
	if b.Missing[:1][0] != "" {
		t.Error("a missing id is left behind")
	}
}

// full returns a patient of whom every field and list is filled.
func full() Patient {
	var p Patient
	for n := 1; ; n++ {
		Generator{Seed: 7}.Patient(n, &p)
		if len(p.Identifiers) > 1 && len(p.Diagnoses) > 0 && len(p.Medications) > 0 && len(p.Allergies) > 0 && len(p.Visits) > 0 {
			return p
		}
	}
}

// isEmpty looks at everything in v, also between length and capacity.
func isEmpty(v reflect.Value, t *testing.T) bool {
	t.Helper()
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			if !isEmpty(field, t) {
				return false
			}
		}
		return true
	case reflect.Slice:
		all := v.Slice(0, v.Cap())
		for i := range all.Len() {
			if !isEmpty(all.Index(i), t) {
				return false
			}
		}
		return v.Len() == 0
	}
	return v.IsZero()
}

// Whatever is logged or printed by mistake, by value or by pointer, names nobody.
func TestLogsShowNobody(t *testing.T) {
	p, c := full(), Generator{Seed: 1}.Clinician(7)
	q, err := NewClinicianQuery(c.Email, c.Organisation)
	require.NoError(t, err)
	b := Batch{Patients: []Patient{p}, Missing: []string{"P999999"}}
	search := PatientSearch{IDs: []string{p.ID}, Identifier: p.Identifiers[0], Name: p.Name.Family, Birth: Dates{First: p.BirthDate}, After: "P000041"}
	page := Page{Patients: []Patient{p}, More: true}
	o := Observation{Patient: p.ID, Text: "heart rate", Value: 71.5}
	a := ClinicianAnswer{Clinicians: []Clinician{c}}
	var shown bytes.Buffer
	for _, v := range []any{p, &p, b, &b, c, &c, q, &q, a, &a, search, &search, page, &page, o, &o} {
		slog.New(slog.NewTextHandler(&shown, nil)).Info("found", "it", v)
		slog.New(slog.NewJSONHandler(&shown, nil)).Info("found", "it", v)
		fmt.Fprintf(&shown, "%v %+v %#v %s", v, v, v, v)
	}
	if !strings.Contains(shown.String(), "redacted") {
		t.Error("nothing says that something was left out")
	}
	for _, secret := range []string{
		p.ID, p.Name.Given, p.Name.Family, p.BirthDate, p.Phone, p.Address.Street, p.Insurance.Policy, p.Identifiers[0].Value, p.Diagnoses[0].Text, p.Medications[0].Name,
		"P999999", "P000041", "heart rate", "71.5", c.Name.Given, c.Name.Family, c.Email, c.Organisation, q.Email, q.Organisation,
	} {
		if strings.Contains(shown.String(), secret) {
			t.Errorf("%q is shown", secret)
		}
	}
}
