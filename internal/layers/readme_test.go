package layers

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// Every Go block in the README is part, line by line, of an example that is
// compiled and run: an example_test.go, or what is below examples. Only the indentation may differ.
func TestTheReadmeShowsCodeThatRuns(t *testing.T) {
	root := os.DirFS("../..")
	readme, err := fs.ReadFile(root, "README.md")
	if err != nil {
		t.Fatal(err)
	}
	var examples strings.Builder
	err = eachGoFile(root, func(name string, source []byte) error {
		if path.Base(name) == "example_test.go" || strings.HasPrefix(name, "examples/") {
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
			t.Errorf("in no example:\n%s", code)
		}
	}
}

// The settings for nginx are those that a test in another module runs. It is compared
// here because the test cache does not notice files outside of a test's module.
func TestTheMeshPageShowsSettingsThatAreTested(t *testing.T) {
	root := os.DirFS("../..")
	page, err := fs.ReadFile(root, "docs/mesh.md")
	if err != nil {
		t.Fatal(err)
	}
	settings, err := fs.ReadFile(root, "lab/behind/testdata/settings.conf")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```nginx\n"+string(settings)+"```") {
		t.Errorf("docs/mesh.md does not have\n%s", settings)
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fence   = regexp.MustCompile("(?s)```.*?```")
	noise   = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Every link of a document to another file, or to a heading, leads somewhere.
func TestLinksInDocumentsLeadSomewhere(t *testing.T) {
	root := os.DirFS("../..")
	documents, err := fs.Glob(root, "*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"docs/*.md", "docs/adr/*.md", "examples/*/*.md"} {
		more, err := fs.Glob(root, pattern)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, more...)
	}
	for _, name := range documents {
		text, err := fs.ReadFile(root, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			to := name
			if file != "" {
				to = path.Join(path.Dir(name), file)
			}
			if _, err := fs.Stat(root, to); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
			} else if anchor != "" && !hasHeading(root, to, anchor) {
				t.Errorf("%s links to %s: there is no such heading", name, m[1])
			}
		}
	}
}

// hasHeading reports whether a document has a heading with this anchor.
func hasHeading(root fs.FS, name, anchor string) bool {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return false
	}
	for _, m := range heading.FindAllStringSubmatch(string(text), -1) {
		if strings.ReplaceAll(strings.ToLower(noise.ReplaceAllString(m[1], "")), " ", "-") == anchor {
			return true
		}
	}
	return false
}

// flush moves every line to the left margin.
func flush(code string) string {
	var b strings.Builder
	for line := range strings.Lines(code) {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.String()
}
