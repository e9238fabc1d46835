package pages

import (
	"strings"
	"testing"
)

// kept is a test that keeps what it is told.
type kept struct {
	testing.TB
	failed bool
}

func (k *kept) Errorf(string, ...any) { k.failed = true }

func TestWordsAreFoundWhereverLinesEnd(t *testing.T) {
	line, _, _ := strings.Cut(Text(t, "CONTRIBUTING.md"), "\n\n")
	for words, missing := range map[string]bool{line: false, strings.Join(strings.Fields(line), "\n "): false, line + "?": true} {
		k := &kept{TB: t}
		if Says(k, "CONTRIBUTING.md", words); k.failed != missing {
			t.Errorf("%q: failed %v", words, k.failed)
		}
	}
}
