package pages

import (
	"strings"
	"testing"
)

func TestWordsAreFoundWhereverLinesEnd(t *testing.T) {
	text := Text(t, "CONTRIBUTING.md")
	line, _, _ := strings.Cut(text, "\n\n")
	for words, want := range map[string]bool{line: true, strings.Join(strings.Fields(line), "\n "): true, line + "?": false} {
		if has(text, words) != want {
			t.Errorf("%q: found %v", words, !want)
		}
	}
}
