package patientapi

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestEqualQuestionsAreEqualValues(t *testing.T) {
	want := ClinicianQuery{"someone@org01.example", "weir road surgery"}
	for _, given := range [][2]string{
		{"someone@org01.example", "Weir Road Surgery"}, {" Someone@ORG01.example\n", "\tWEIR ROAD SURGERY "},
	} {
		if q, err := NewClinicianQuery(given[0], given[1]); err != nil || q != want {
			t.Errorf("%q: %v", given, err)
		}
	}
}

func TestBadInputNamesItsFieldAndNothingElse(t *testing.T) {
	const email, org = "someone@org01.example", "Weir Road Surgery"
	for _, bad := range []string{
		"", " ", "secret", "secret@", "@secret", "secret@@x", "a secret@b", "secret@b c", "<secret@b>", "Dr <secret@b>", `"secret"@b`,
		"secret@b, c@d", "secret@b\x00", "secret(x)@b", "sécret@b", "secret\r\n@b", strings.Repeat("secret", 42) + "@b.c",
	} {
		refused(t, bad, org, "email")
	}
	for _, bad := range []string{"", "  ", "secret\x00", "secret\nx", "secret\u200bx", "secret\xff", strings.Repeat("secret", 34)} {
		refused(t, email, bad, "org")
	}
	for _, good := range []string{"a@b", "o'neil+x@b-c.example", strings.Repeat("x", 249) + "@b.c"} {
		if _, err := NewClinicianQuery(good, "Årstad & Søn"); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}

func refused(t *testing.T, email, org, field string) {
	t.Helper()
	q, err := NewClinicianQuery(email, org)
	f, ok := errors.AsType[*FieldError](err)
	if !ok || f.Field != field || strings.Contains(err.Error(), "secret") || q != (ClinicianQuery{}) {
		t.Errorf("%q, %q: %v, want it about %s", email, org, err, field)
	}
}

// The slow way to merge: put each in its place, unless there is one already.
func slowMerge(first, second []Clinician) []Clinician {
	merged := []Clinician{}
	for _, c := range append(slices.Clone(first), second...) {
		at := 0
		for at < len(merged) && merged[at].ID < c.ID {
			at++
		}
		if at == len(merged) || merged[at].ID != c.ID {
			merged = slices.Insert(merged, at, c)
		}
	}
	return merged
}

func FuzzMerge(f *testing.F) {
	f.Add([]byte{1, 2, 3}, []byte{2, 3, 4})
	f.Add([]byte{}, []byte{7, 7})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		list := func(numbers []byte, from string) (list []Clinician) {
			for _, n := range numbers {
				list = append(list, Clinician{ID: ClinicianID(int(n)), Specialty: from})
			}
			return list
		}
		first, second := list(a, "first"), list(b, "second")
		got := MergeClinicians(first, second)
		if got == nil || !slices.Equal(got, slowMerge(first, second)) {
			t.Errorf("%v and %v became %v", a, b, got)
		}
		if !slices.Equal(first, list(a, "first")) || !slices.Equal(second, list(b, "second")) {
			t.Error("merging changed what it was given")
		}
	})
}

func FuzzClinicianQuery(f *testing.F) {
	f.Add("someone@org01.example", "Weir Road Surgery")
	f.Add(`"a b"@[127.0.0.1]`, "x\x00")
	f.Fuzz(func(t *testing.T, email, org string) {
		q, err := NewClinicianQuery(email, org)
		if err != nil {
			if field, ok := errors.AsType[*FieldError](err); !ok || field.Field != "email" && field.Field != "org" {
				t.Fatalf("an error about no field: %v", err)
			}
			return
		}
		if again, err := NewClinicianQuery(q.Email, q.Organisation); err != nil || again != q {
			t.Errorf("%q %q is not normal: %v", q.Email, q.Organisation, err)
		}
		both := q.Email + q.Organisation
		if !utf8.ValidString(both) || strings.ContainsAny(both, "\x00\r\n\t") || strings.Count(q.Email, "@") < 1 {
			t.Errorf("%q %q was accepted", q.Email, q.Organisation)
		}
	})
}
