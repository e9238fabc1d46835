package layers

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
)

// Every Go block in the README is part, line by line, of an example that is
// compiled and run. Only the indentation may differ.
func TestTheReadmeShowsCodeThatRuns(t *testing.T) {
	root := os.DirFS("../..")
	readme, err := fs.ReadFile(root, "README.md")
	if err != nil {
		t.Fatal(err)
	}
	var examples strings.Builder
	err = eachGoFile(root, func(name string, source []byte) error {
		if path.Base(name) == "example_test.go" {
			examples.WriteString(flush(string(source)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(readme), "```go\n")[1:]
	if len(blocks) == 0 {
		t.Fatal("the README shows no Go")
	}
	for _, block := range blocks {
		code, _, _ := strings.Cut(block, "```")
		if !strings.Contains(examples.String(), flush(code)) {
			t.Errorf("in no example_test.go:\n%s", code)
		}
	}
}

// flush moves every line to the left margin.
func flush(code string) string {
	var b strings.Builder
	for line := range strings.Lines(code) {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.String()
}
