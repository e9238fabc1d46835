package access

import (
	"regexp"
	"testing"
)

// grammar is that of SMART App Launch, for scopes of resources and without conditions.
var grammar = regexp.MustCompile(`\A(user|patient|system)/(\*|[A-Z][A-Za-z]*)\.(read|write|\*|c?r?u?d?s?)\z`)

func FuzzParseScope(f *testing.F) {
	for _, s := range []string{"user/Patient.rs", "patient/*.cruds", "system/Observation.read", "user/Patient.rs?a=b", "user/Patient.sr", "openid", "user/.", "user/Patient.*\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, ok := parseScope(text)
		m := grammar.FindStringSubmatch(text)
		if want := m != nil && m[3] != ""; ok != want || ValidScope(text) != want {
			t.Fatalf("%q: %v, %+v", text, ok, s)
		}
		if ok && (string(s.kind) != m[1] || s.resource != m[2] || !inOrder(s.permissions)) {
			t.Fatalf("%q: %+v", text, s)
		}
		if !ok && granted([]string{text}, user, Patients, Read) {
			t.Fatalf("%q opens something", text)
		}
	})
}
