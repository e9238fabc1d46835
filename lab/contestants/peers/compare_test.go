package peers

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

var update = flag.Bool("update", false, "renew the tables in testdata")

// question is a line of a table; ask has one side answer it.
type question[S any] struct {
	text string
	ask  func(*testing.T, S) string
}

// compare asks every side every question, and compares the table with a file. Where time
// can be virtual it is known when a side does nothing more.
func compare[S any](t *testing.T, file string, questions []question[S], sides []S, name func(S) string, virtual func(S) bool) {
	var b strings.Builder
	row := func(first string, cell func(S) string) {
		b.WriteString("| " + first)
		for _, s := range sides {
			b.WriteString(" | " + cell(s))
		}
		b.WriteString(" |\n")
	}
	row("", name)
	b.WriteString("|---" + strings.Repeat("|---", len(sides)) + "|\n")
	for _, q := range questions {
		row(q.text, func(s S) (said string) {
			if !virtual(s) {
				return q.ask(t, s)
			}
			synctest.Test(t, func(t *testing.T) { said = q.ask(t, s) })
			return said
		})
	}
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("renew it with: go test ./lab/contestants/peers -args -update, then copy it to docs/migrate/compare.md\ngot\n%s\nwant\n%s", &b, want)
	}
}
