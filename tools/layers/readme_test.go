package layers

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every Go block of the README and of docs/migrate is part, line by line, of an
// example that is compiled and run: a file example*_test.go, or what is below examples.
// Of a diff one side is; the other is what it replaces. Only the indentation may differ.
func TestDocumentsShowCodeThatRuns(t *testing.T) {
	root := os.DirFS("../..")
	var examples strings.Builder
	err := eachGoFile(root, func(name string, source []byte) error {
		base := path.Base(name)
		if strings.HasPrefix(base, "example") && strings.HasSuffix(base, "_test.go") || strings.HasPrefix(name, "examples/") {
			examples.WriteString(flush(string(source)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	shown := func(code string) bool { return strings.Contains(examples.String(), flush(code)) }
	migrate, err := fs.Glob(root, "docs/migrate/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(migrate, "README.md") {
		for _, m := range regexp.MustCompile("(?s)```(go|diff)\n(.*?)```").FindAllStringSubmatch(textOf(t, name), -1) {
			if m[1] == "go" && !shown(m[2]) || m[1] == "diff" && !shown(side(m[2], "-")) && !shown(side(m[2], "+")) {
				t.Errorf("%s shows what is in no example:\n%s", name, m[2])
			}
		}
	}
}

// side is a diff without the lines that begin with the mark, and without the other marks.
func side(diff, without string) string {
	var b strings.Builder
	for line := range strings.Lines(diff) {
		if !strings.HasPrefix(line, without) {
			b.WriteString(strings.TrimLeft(line, "+-"))
		}
	}
	return b.String()
}

// What other libraries do is shown as a test in another module found it, and the settings for nginx
// are those that a test of admissionhttp runs.
func TestPagesShowWhatTestsHaveFound(t *testing.T) {
	peers := "lab/contestants/peers/testdata/"
	for _, c := range []struct{ page, before, file, after string }{
		{"docs/migrate/compare.md", "", peers + "jobs.md", ""},
		{"docs/migrate/compare.md", "", peers + "admission.md", ""},
		{"docs/operate/mesh.md", "```nginx\n", "admissionhttp/testdata/settings.conf", "```"},
	} {
		if want := c.before + textOf(t, c.file) + c.after; !strings.Contains(textOf(t, c.page), want) {
			t.Errorf("%s does not have\n%s", c.page, want)
		}
	}
}

// textOf returns what a file of the repository says.
func textOf(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pkg.go.dev is the page of a package, and docs/packages.md leads there: every package that users
// import is in that list, and its comment has more than one sentence.
func TestEveryPackageIsDescribedAndListed(t *testing.T) {
	list := textOf(t, "docs/packages.md")
	comments := map[string]string{} // by folder
	err := eachGoFile(os.DirFS("../.."), func(name string, source []byte) error {
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.PackageClauseOnly|parser.ParseComments)
		if err == nil && !strings.HasSuffix(name, "_test.go") {
			comments[path.Dir(name)] += file.Doc.Text()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range slices.Concat(layers...) {
		first, _, _ := strings.Cut(dir, "/")
		imported := !strings.Contains("/"+dir, "/internal/") && !strings.Contains("/"+dir, "/cmd/")
		if !imported || first == "deploy" || first == "examples" || first == "lab" || first == "load" || first == "tools" {
			continue
		}
		if words := strings.Fields(comments[dir]); !strings.Contains(strings.Join(words, " "), ". ") {
			t.Errorf("the comment of package %s has one sentence: say what it costs, where people stumble, when not to use it", dir)
		}
		if entry := fmt.Sprintf("[%s](%s)", strings.Replace(dir, ".", "spillway", 1), path.Join("..", dir)); !strings.Contains(list, entry) {
			t.Errorf("docs/packages.md does not have %s", entry)
		}
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
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md", "examples/*/*.md"} {
		more, err := fs.Glob(root, pattern)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, more...)
	}
	for _, name := range documents {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(textOf(t, name), ""), -1) {
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
