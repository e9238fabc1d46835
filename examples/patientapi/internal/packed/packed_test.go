package packed

import (
	"slices"
	"strings"
	"testing"
)

func TestRows(t *testing.T) {
	for text, want := range map[string][][]string{
		"":                       nil,
		"a":                      {{"a", ""}},
		"a\x1fb":                 {{"a", "b"}},
		"a\x1fb\x1ec\x1fd":       {{"a", "b"}, {"c", "d"}},
		"\x1f\x1e\x1f":           {{"", ""}, {"", ""}},
		"a\x1f\x1e\x1fd":         {{"a", ""}, {"", "d"}},
		"a b,\n|\x1f\"c\"\x1ex=": {{"a b,\n|", `"c"`}, {"x=", ""}},
	} {
		var got [][]string
		for r := range Rows(text) {
			got = append(got, []string{r.Field(), r.Field()})
		}
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for range Rows(strings.Repeat("a\x1e", 3)) {
		break // may be left early
	}
}
