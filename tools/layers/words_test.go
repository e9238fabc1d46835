package layers

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// oddWords are no names: they do not say what they name.
var oddWords = strings.Fields(`against asks beside book brief broke drowned enough figure here holds hurry itself lax
	least look made mark or owe patience spent tells told took turn up`)

// oddPhrases are no comments: a number or its name says more, and code has no patience.
var oddPhrases = regexp.MustCompile(`(?i)\bso many\b|\bpatience\b|\bwhat (it|this|that) says\b`)

// oneMeaning are the words of the glossary that name a thing. A package may export a type with such a
// name if no other package does.
var oneMeaning = strings.Fields(`Limit Law Slot Permit Cost Queue Priority Sample Trial Baseline Signal Worker Job
	Handoff Branch Hedge Contestant Cell Claim Verdict`)

// exception allows a word or a phrase in a folder and below, for a reason.
type exception struct{ folder, word, reason string }

var exceptions = []exception{
	{"internal/handoff", "Queue", "the queue of a worker pool, inside the root module only; jobqueue.Queue is of durable jobs"},
	{"jobqueue", "Job", "a durable job is data, a job of workerpool is a function: nobody uses both for one job"},
	{"metrics", "Sample", "OpenTelemetry and Prometheus call a value of a metric a sample"},
}

// checked reports whether names in the folder have to be plain: it has a package for users, or is
// internal.
func checked(dir string) bool {
	first, _, _ := strings.Cut(dir, "/")
	return first != "lab" && first != "load" && first != "examples" && first != "cmd"
}

func TestNamesSayWhatTheyName(t *testing.T) {
	found, err := words(os.DirFS("../.."), exceptions)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Error(f)
	}
}

// words reads the Go files below the root of fsys, without tests, and returns the names and comments
// with odd words, the types that share a word of the glossary, and the exceptions without use.
func words(fsys fs.FS, exceptions []exception) (found []string, err error) {
	used := map[exception]bool{}
	excused := func(dir, word string) (is bool) {
		for _, e := range exceptions {
			if (e.word == "*" || e.word == word) && (dir == e.folder || strings.HasPrefix(dir, e.folder+"/")) {
				used[e], is = true, true
			}
		}
		return is
	}
	types := map[string][]string{} // folders, by the word of the glossary
	err = eachGoFile(fsys, func(name string, source []byte) error {
		dir := path.Dir(name)
		if strings.HasSuffix(name, "_test.go") || !checked(dir) {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, id := range defined(file) {
			if slices.Contains(oddWords, id.Name) && !excused(dir, id.Name) {
				found = append(found, fmt.Sprintf("%s: the name %s does not say what it names", set.Position(id.Pos()), id.Name))
			}
		}
		for _, group := range file.Comments {
			for _, c := range group.List {
				if phrase := oddPhrases.FindString(c.Text); phrase != "" && !excused(dir, phrase) {
					found = append(found, fmt.Sprintf("%s: a comment with %q", set.Position(c.Pos()), phrase))
				}
			}
		}
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			for i := 0; ok && i < len(g.Specs); i++ {
				if s, ok := g.Specs[i].(*ast.TypeSpec); ok && slices.Contains(oneMeaning, s.Name.Name) && !excused(dir, s.Name.Name) {
					types[s.Name.Name] = append(types[s.Name.Name], dir)
				}
			}
		}
		return nil
	})
	for _, word := range slices.Sorted(maps.Keys(types)) {
		if dirs := types[word]; len(dirs) > 1 {
			found = append(found, fmt.Sprintf("%s is a type in %s: one word, one meaning", word, strings.Join(dirs, " and in ")))
		}
	}
	for _, e := range exceptions {
		if !used[e] {
			found = append(found, fmt.Sprintf("the exception for %s in %s is of no use any more: take it out of the table of tools/layers", e.word, e.folder))
		}
	}
	return found, err
}

// defined returns the names that a file introduces: of types, functions, methods, fields, parameters,
// constants and variables.
func defined(file *ast.File) (all []*ast.Ident) {
	exprs := func(list ...ast.Expr) {
		for _, e := range list {
			if id, ok := e.(*ast.Ident); ok {
				all = append(all, id)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			all = append(all, n.Name)
		case *ast.TypeSpec:
			all = append(all, n.Name)
		case *ast.ValueSpec:
			all = append(all, n.Names...)
		case *ast.Field: // of a struct, an interface, parameters, results or type parameters
			all = append(all, n.Names...)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				exprs(n.Lhs...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				exprs(n.Key, n.Value)
			}
		}
		return true
	})
	return all
}

func TestEachPlantedOddWordIsFound(t *testing.T) {
	for what, c := range map[string]struct {
		name, source, want string // no want: nothing is found
	}{
		"function":         {"gate/g.go", "package gate\nfunc took() {}\n", "gate/g.go:2:6: the name took"},
		"method":           {"gate/g.go", "package gate\ntype g int\nfunc (x g) told() {}\n", "the name told"},
		"field":            {"gate/g.go", "package gate\ntype g struct{ n, least int }\n", "the name least"},
		"parameter":        {"gate/g.go", "package gate\nfunc f(mark int) {}\n", "the name mark"},
		"result":           {"gate/g.go", "package gate\nfunc f() (enough bool) { return }\n", "the name enough"},
		"method to have":   {"gate/g.go", "package gate\ntype g interface{ look() }\n", "the name look"},
		"type":             {"gate/g.go", "package gate\ntype figure int\n", "the name figure"},
		"constant":         {"gate/g.go", "package gate\nconst up = 1\n", "the name up"},
		"variable":         {"gate/g.go", "package gate\nfunc f() { n, here := 1, 2; _, _ = n, here }\n", "the name here"},
		"of a loop":        {"gate/g.go", "package gate\nfunc f() { for turn := range 3 { _ = turn } }\n", "the name turn"},
		"comment":          {"gate/g.go", "package gate\n\n// f runs so many times.\nfunc f() {}\n", `gate/g.go:3:1: a comment with "so many"`},
		"two meanings":     {"gate/g.go", "package gate\ntype Law int\n", "Law is a type in gate and in limit"},
		"use":              {"gate/g.go", "package gate\nimport x \"x\"\nvar n = x.took\n", ""},
		"part of a name":   {"gate/g.go", "package gate\nvar tookOver, leastOf int\n", ""},
		"in a test":        {"gate/g_test.go", "package gate\nvar took int\n", ""},
		"in an experiment": {"lab/l.go", "package lab\nvar took int\n", ""},
		"excused":          {"route/deep/r.go", "package deep\nvar took int\n", ""},
		"excused type":     {"metrics/m.go", "package metrics\ntype Sample int\n", ""},
	} {
		t.Run(what, func(t *testing.T) {
			fsys := fstest.MapFS{
				"limit/l.go":   {Data: []byte("package limit\ntype Law int\ntype Sample int\n")},
				"metrics/s.go": {Data: []byte("package metrics\ntype Sample int\n")},
				"route/r.go":   {Data: []byte("package route\nvar told int\n")},
				c.name:         {Data: []byte(c.source)},
			}
			got, err := words(fsys, []exception{{"route", "*", "a reason"}, {"metrics", "Sample", "a reason"}})
			if err != nil || len(got) > 1 || (len(got) == 1) != (c.want != "") || c.want != "" && !strings.Contains(got[0], c.want) {
				t.Errorf("found %q, error %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestAnExceptionWithoutUseIsFound(t *testing.T) {
	fsys := fstest.MapFS{"limit/l.go": {Data: []byte("package limit\nvar n int\n")}}
	got, err := words(fsys, []exception{{"limit", "took", "a reason"}})
	if err != nil || len(got) != 1 || !strings.Contains(got[0], "the exception for took in limit is of no use") {
		t.Errorf("found %q, error %v", got, err)
	}
}

func TestEachExceptionHasAReason(t *testing.T) {
	for _, e := range exceptions {
		if len(e.reason) < 10 {
			t.Errorf("the exception for %s in %s has no reason", e.word, e.folder)
		}
	}
}
