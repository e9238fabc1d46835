// Package pages lets a test hold a document to what the code gives: the test computes a
// figure, and the document has to say it.
package pages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Text is the document with this name, counted from the root of the repository.
func Text(t testing.TB, name string) string {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.work")); err == nil {
			break
		}
		above := filepath.Dir(folder)
		if above == folder {
			t.Fatal("there is no go.work above the test")
		}
		folder = above
	}
	text, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Says fails the test if the document does not have these words, wherever its lines end. That is a
// subtest of its own, so that -skip can leave it out: a law without one of its rules gives other
// figures.
func Says(t *testing.T, name, words string) {
	t.Helper()
	text := Text(t, name)
	t.Run("as the page says", func(t *testing.T) {
		if !has(text, words) {
			t.Errorf("%s does not say what the code gives: write there\n\t%s", name, words)
		}
	})
}

func has(text, words string) bool { return strings.Contains(flow(text), flow(words)) }

func flow(text string) string { return strings.Join(strings.Fields(text), " ") }
