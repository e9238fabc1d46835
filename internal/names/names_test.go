package names

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLongNamesAreHashed(t *testing.T) {
	for _, name := range []string{"", "GET /orders/{id}", strings.Repeat("a", Longest)} {
		if Bounded(name) != name {
			t.Errorf("%q became %q", name, Bounded(name))
		}
	}
	seen := map[string]bool{}
	for _, name := range []string{strings.Repeat("a", Longest+1), strings.Repeat("a", Longest+2), strings.Repeat("ä", Longest), strings.Repeat("\xff", 1<<20)} {
		got := Bounded(name)
		if len(got) > Longest || !utf8.ValidString(got) || seen[got] || Bounded(got) != got {
			t.Errorf("%.10q… became %q", name, got)
		}
		seen[got] = true
	}
}
